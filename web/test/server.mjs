// The server that the tests use: the mock, or another one.
//
//   PAGE_CONTROL  a module with `start()`, which returns what `startMock` returns; absent: the mock server

import { pathToFileURL } from 'node:url';

const control = process.env.PAGE_CONTROL;

/** Whether the tests use the mock server. */
export const isMock = !control;

export async function startServer() {
  if (isMock) return (await import('./mock-server.mjs')).startMock();
  const { start } = await import(new URL(control, pathToFileURL(`${process.cwd()}/`)));
  return start();
}
