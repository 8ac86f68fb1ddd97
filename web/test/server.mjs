// The server that the tests use: the mock, or another one.
//
//   PAGE_URL      the URL that acpipe prints, with the token; absent: the mock server is started
//   PAGE_CONTROL  a module with `start(url)`, which returns what `startMock` returns: it controls the agent of that server

export async function startServer() {
  const url = process.env.PAGE_URL;
  if (!url) return (await import('./mock-server.mjs')).startMock();
  const control = process.env.PAGE_CONTROL;
  if (!control) throw new Error('PAGE_URL is set, so PAGE_CONTROL must name the module that controls the agent of that server');
  const { start } = await import(new URL(control, `file://${process.cwd()}/`));
  return start(url);
}
