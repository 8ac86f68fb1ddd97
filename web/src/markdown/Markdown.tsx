// Markdown of agents as elements of React. No HTML of an agent reaches the document: tags are shown as text.

import type { Token, Tokens } from 'marked';
import { Fragment, memo, useMemo, type ReactNode } from 'react';
import { useMessage } from '../parts/context';
import { LongText } from '../text/LongText';
import { CodeBlock } from './CodeBlock';
import { lex } from './lexer';
import { safeUrl } from './safeUrl';

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' };

/** marked leaves entities as they are, since it writes HTML. */
function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi, (whole, decimal, hex, name) => {
    if (name) return ENTITIES[name.toLowerCase()] ?? whole;
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

function Link({ href, children }: { href: string; children: ReactNode }) {
  const url = safeUrl(href);
  if (url === null) return <>{children}</>;
  return (
    <a href={url} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  );
}

function inline(tokens: Token[] | undefined): ReactNode {
  return (tokens ?? []).map((token, index) => <Fragment key={index}>{inlineToken(token)}</Fragment>);
}

function inlineToken(token: Token): ReactNode {
  switch (token.type) {
    case 'strong':
      return <strong>{inline(token.tokens)}</strong>;
    case 'em':
      return <em>{inline(token.tokens)}</em>;
    case 'del':
      return <del>{inline(token.tokens)}</del>;
    case 'codespan':
      return <code>{token.text}</code>;
    case 'br':
      return <br />;
    case 'link':
      return <Link href={token.href}>{inline(token.tokens)}</Link>;
    case 'image':
      // Loading it would tell its server about this page.
      return <Link href={token.href}>{token.text || token.href}</Link>;
    case 'checkbox':
      return <input type="checkbox" checked={token.checked} readOnly disabled />;
    case 'text':
      return token.tokens ? inline(token.tokens) : decode(token.text);
    case 'escape':
      return decode(token.text);
    default:
      return token.raw;
  }
}

function table({ header, rows, align }: Tokens.Table): ReactNode {
  const cell = (Tag: 'th' | 'td') => (content: Tokens.TableCell, index: number) => (
    <Tag key={index} className={align[index] ? `align-${align[index]}` : undefined}>
      {inline(content.tokens)}
    </Tag>
  );
  return (
    <div className="table" tabIndex={0}>
      <table>
        <thead>
          <tr>{header.map(cell('th'))}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>{row.map(cell('td'))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function list({ ordered, start, items }: Tokens.List): ReactNode {
  const content = items.map((item, index) => <li key={index}>{blocks(item.tokens)}</li>);
  return ordered ? <ol start={start === '' ? 1 : start}>{content}</ol> : <ul>{content}</ul>;
}

function heading({ depth, tokens }: Tokens.Heading): ReactNode {
  // The page itself has the first two levels.
  const Tag = `h${Math.min(depth + 2, 6)}` as 'h3';
  return <Tag>{inline(tokens)}</Tag>;
}

function blocks(tokens: Token[]): ReactNode {
  return tokens.map((token, index) => <Fragment key={index}>{block(token)}</Fragment>);
}

function block(token: Token): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'heading':
      return heading(token as Tokens.Heading);
    case 'paragraph':
      return <p>{inline(token.tokens)}</p>;
    case 'code':
      return <CodeBlock text={token.text} language={token.lang} />;
    case 'blockquote':
      return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case 'list':
      return list(token as Tokens.List);
    case 'table':
      return table(token as Tokens.Table);
    case 'hr':
      return <hr />;
    default:
      return inlineToken(token);
  }
}

const Blocks = memo(function Blocks({ text, share }: { text: string; share: number }) {
  const content = useMemo(() => {
    const tokens = lex(text, share);
    return tokens === null ? <p className="raw"><LongText text={text} /></p> : blocks(tokens);
  }, [text, share]);
  return <div className="markdown">{content}</div>;
});

/** A text, whose share of the bounds depends on the number of parts of its message. */
export function Markdown({ text }: { text: string }) {
  return <Blocks text={text} share={useMessage().share} />;
}
