export * from './browser.js';
export { start, type StartOptions } from './start.js';
export { findBinary, platformPackage } from './binary.js';
