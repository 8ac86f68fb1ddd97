import { safeUrl } from '../markdown/safeUrl';
import { clip } from '../text/LongText';

export function Source({ title, url }: { title: string; url: string | null }) {
  const target = url === null ? null : safeUrl(url);
  return (
    <p className="source">
      {target === null ? (
        clip(title)
      ) : (
        <a href={target} target="_blank" rel="noreferrer noopener">
          {clip(title)}
        </a>
      )}
    </p>
  );
}
