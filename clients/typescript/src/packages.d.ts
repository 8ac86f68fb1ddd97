/** Returns the file to which `require` would resolve a module from this package; throws if there is none. */
export function resolve(name: string): string;
