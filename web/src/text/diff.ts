// Lines that a change removes and adds.

export interface DiffLine {
  kind: 'same' | 'added' | 'removed' | 'skipped';
  text: string;
}

/** Above this product of lengths, a comparison line by line would stall the page. */
const MOST_CELLS = 4_000_000;
const CONTEXT = 3;

function lines(text: string): string[] {
  if (text === '') return [];
  const all = text.split('\n');
  if (all.at(-1) === '') all.pop();
  return all;
}

const as = (kind: DiffLine['kind']) => (text: string): DiffLine => ({ kind, text });

/** Longest common subsequence of two lists without a common beginning and end. */
function compare(before: string[], after: string[]): DiffLine[] {
  if (before.length * after.length > MOST_CELLS) return [...before.map(as('removed')), ...after.map(as('added'))];
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const isSame = before[i] === after[j];
      const [skipBefore, skipAfter] = [lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!];
      lengths[i * width + j] = isSame ? lengths[(i + 1) * width + j + 1]! + 1 : Math.max(skipBefore, skipAfter);
    }
  }
  const result: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      result.push({ kind: 'same', text: before[i]! });
      i++;
      j++;
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) {
      result.push({ kind: 'removed', text: before[i++]! });
    } else {
      result.push({ kind: 'added', text: after[j++]! });
    }
  }
  return [...result, ...before.slice(i).map(as('removed')), ...after.slice(j).map(as('added'))];
}

/** Replaces unchanged lines that are far from a change by one line. */
function fold(all: DiffLine[]): DiffLine[] {
  const isNear = all.map((_, index) => all.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(({ kind }) => kind !== 'same'));
  const result: DiffLine[] = [];
  let skipped = 0;
  const flush = () => {
    if (skipped > 0) result.push({ kind: 'skipped', text: skipped === 1 ? '1 unchanged line' : `${skipped} unchanged lines` });
    skipped = 0;
  };
  all.forEach((line, index) => {
    if (!isNear[index]) {
      skipped++;
      return;
    }
    flush();
    result.push(line);
  });
  flush();
  return result;
}

export function diffLines(oldText: string, newText: string): DiffLine[] {
  const [before, after] = [lines(oldText), lines(newText)];
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  return fold([
    ...before.slice(0, start).map(as('same')),
    ...compare(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(as('same')),
  ]);
}
