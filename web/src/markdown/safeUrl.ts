const SCHEMES = ['http:', 'https:', 'mailto:'];

/** Returns the address if a link may lead there. Relative ones would lead into this page, so they are none. */
export function safeUrl(url: string): string | null {
  try {
    return SCHEMES.includes(new URL(url).protocol) ? url : null;
  } catch {
    return null;
  }
}
