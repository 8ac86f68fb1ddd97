// Tokens of Markdown, in bounded time and depth: text of agents is stored, so a message that stalls the page stalls it
// at every reload. What exceeds the bounds stays as text.

import { Lexer, marked, Tokenizer, type Token, type Tokens } from 'marked';

/** Levels of nested blocks, and of nested emphasis and links. */
const MOST_LEVELS = 24;

/** Tokens of a text, each of which becomes an element, and lines. */
const MOST_TOKENS = 20_000;

/** Characters of all blocks of a text, counted once for each level. */
const MOST_BLOCK_CHARACTERS = 1_000_000;

/** Characters that marked searches in all paragraphs of a text, see `searched`. */
const MOST_SEARCHED = 10_000_000;

const SPECIAL = /[\\<![\]`*_~@&|]|https?:|ftp:|www\./g;
const RUN = /[\w.!#$%&'*+/=?`{|}~-]{16,}| {4,}/g;

/** Steps that are left for a text. */
interface Budget {
  tokens: number;
  blockCharacters: number;
  searched: number;
}

class TooMuch extends Error {}

function textToken(text: string): Tokens.Text {
  return { type: 'text', raw: text, text, escaped: false };
}

function paragraph(text: string): Tokens.Paragraph {
  return { type: 'paragraph', raw: text, text, tokens: [textToken(text)] };
}

/**
 * Number of characters that marked may search in a paragraph: the rest of it at each special character, and the rest of a
 * long word, which may be an address, or of blanks at each of its characters.
 */
function searched(text: string): number {
  let all = text.length * ((text.match(SPECIAL)?.length ?? 0) + 1);
  for (const [run] of text.matchAll(RUN)) all += run.length ** 2;
  return all;
}

/** Lines of a text up to the first blank one. */
function linesOfBlock(text: string): string[] {
  const end = text.indexOf('\n\n');
  return (end < 0 ? text : text.slice(0, end)).split('\n');
}

class BoundedTokenizer extends Tokenizer {
  constructor(private readonly budget: Budget) {
    super();
  }

  #count(tokens: number): void {
    this.budget.tokens -= tokens;
    if (this.budget.tokens < 0) throw new TooMuch();
  }

  /** Called for each block. */
  override space(text: string): Tokens.Space | undefined {
    this.#count(1);
    return super.space(text);
  }

  /** Called for each piece of a paragraph. */
  override escape(text: string): Tokens.Escape | undefined {
    this.#count(1);
    return super.escape(text);
  }

  /** Adds the cells that are missing in a row. */
  override table(text: string): Tokens.Table | undefined {
    const isTable = /^[^\n]*\n[ |:]*-/.test(text);
    const lines = isTable ? linesOfBlock(text) : [];
    if (lines.length > 0 && lines[0]!.split('|').length * lines.length > this.budget.tokens) throw new TooMuch();
    return super.table(text);
  }

  /** Reads the quote again at each line that continues it without a mark. */
  override blockquote(text: string): Tokens.Blockquote | undefined {
    if (/^ {0,3}>/.test(text)) {
      const lines = linesOfBlock(text);
      const unmarked = lines.filter((line) => !/^ {0,3}>/.test(line)).length;
      spend(this.budget, lines.join().length * unmarked);
    }
    return super.blockquote(text);
  }

  /** Searches all lines up to the next blank one. In lists, it does so at each of them. */
  override lheading(text: string): Tokens.Heading | undefined {
    const end = text.indexOf('\n\n');
    spend(this.budget, end < 0 ? text.length : end);
    return super.lheading(text);
  }
}

function spend(budget: Budget, characters: number): void {
  budget.blockCharacters -= characters;
  if (budget.blockCharacters < 0) throw new TooMuch();
}

class BoundedLexer extends Lexer {
  #levels = 0;
  #inlineLevels = 0;
  readonly #budget: Budget;

  constructor(budget: Budget) {
    super({ ...marked.defaults, gfm: true, breaks: true, tokenizer: new BoundedTokenizer(budget) });
    this.#budget = budget;
  }

  override blockTokens(text: string, tokens: Token[] = [], lastParagraphClipped = false): any {
    spend(this.#budget, text.length);
    if (this.#levels >= MOST_LEVELS) {
      tokens.push(paragraph(text));
      return tokens;
    }
    this.#levels++;
    const all = super.blockTokens(text, tokens, lastParagraphClipped);
    this.#levels--;
    return all;
  }

  override inlineTokens(text: string, tokens: Token[] = []): Token[] {
    const steps = searched(text);
    if (this.#inlineLevels >= MOST_LEVELS || steps > this.#budget.searched) {
      tokens.push(textToken(text));
      return tokens;
    }
    this.#budget.searched -= steps;
    this.#inlineLevels++;
    const all = super.inlineTokens(text, tokens);
    this.#inlineLevels--;
    return all;
  }
}

/**
 * Returns the blocks of a text; `null` for a text that is shown as it is. `share` is the part of the bounds that the text
 * may use.
 */
export function lex(text: string, share: number): Token[] | null {
  const budget = { tokens: Math.floor(MOST_TOKENS * share), blockCharacters: MOST_BLOCK_CHARACTERS * share, searched: MOST_SEARCHED * share };
  try {
    if (text.split('\n', budget.tokens + 1).length > budget.tokens) return null;
    return new BoundedLexer(budget).lex(text);
  } catch (error) {
    if (error instanceof TooMuch) return null;
    // A fault of marked must not hide the text.
    console.warn('Markdown is shown as text:', error);
    return null;
  }
}
