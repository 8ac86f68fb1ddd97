import { clip } from '../text/LongText';

interface Props {
  url: string;
  mediaType: string;
  name: string | undefined;
}

export function File({ url, mediaType, name }: Props) {
  const label = clip(name ?? mediaType);
  // Only data of the message itself: the page loads nothing from other servers.
  if (mediaType.startsWith('image/') && url.startsWith('data:')) return <img className="file" src={url} alt={label} />;
  if (mediaType.startsWith('audio/') && url.startsWith('data:')) return <audio className="file" src={url} controls aria-label={label} />;
  if (url.startsWith('data:')) {
    return (
      <a className="file" href={url} download={name ?? 'file'}>
        {label}
      </a>
    );
  }
  return <p className="source">{clip(name ?? url)}</p>;
}
