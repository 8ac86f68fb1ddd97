import { useState } from 'react';
import { LongText } from '../text/LongText';

interface Props {
  text: string;
  language: string | undefined;
}

export function CodeBlock({ text, language }: Props) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
  };
  return (
    <div className="code">
      <div className="bar">
        <span>{language}</span>
        {/* Browsers offer the clipboard only to pages of this machine and of TLS. */}
        {window.isSecureContext && (
          <button type="button" onClick={() => void copy()} onBlur={() => setIsCopied(false)}>
            {isCopied ? 'Copied' : 'Copy'}
          </button>
        )}
      </div>
      <pre tabIndex={0}>
        <code>
          <LongText text={text} />
        </code>
      </pre>
    </div>
  );
}
