// The name under which other clients see this window.

const BROWSERS: [RegExp, string][] = [
  [/Edg\//, 'Edge'],
  [/Firefox\/|FxiOS\//, 'Firefox'],
  [/Chrome\/|CriOS\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];

const SYSTEMS: [RegExp, string][] = [
  [/iPhone/, 'iPhone'],
  [/iPad/, 'iPad'],
  [/Android/, 'Android'],
  [/Mac OS X/, 'Mac'],
  [/Windows/, 'Windows'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
];

function find(table: [RegExp, string][], agent: string, fallback: string): string {
  return table.find(([pattern]) => pattern.test(agent))?.[1] ?? fallback;
}

/** Returns a name such as `Safari on iPhone`. */
export function deviceName(agent: string = navigator.userAgent): string {
  return `${find(BROWSERS, agent, 'Browser')} on ${find(SYSTEMS, agent, 'another system')}`;
}
