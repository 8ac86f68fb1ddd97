import { safeUrl } from '../markdown/safeUrl';

export function Source({ title, url }: { title: string; url: string | null }) {
  const target = url === null ? null : safeUrl(url);
  return (
    <p className="source">
      {target === null ? (
        title
      ) : (
        <a href={target} target="_blank" rel="noreferrer noopener">
          {title}
        </a>
      )}
    </p>
  );
}
