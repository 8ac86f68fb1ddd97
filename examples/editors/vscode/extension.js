// The commands of the extension. One acpipe runs for the window; an output channel shows the conversation.
'use strict';

const vscode = require('vscode');
const { AcpipeClient } = require('./client');

let output;
let client; // or undefined if acpipe does not run
let turnRuns = false;

function start() {
  const settings = vscode.workspace.getConfiguration('acpipe');
  const [folder] = vscode.workspace.workspaceFolders ?? [];
  if (!folder) throw new Error('open a folder: the agent works in it');
  return new AcpipeClient({
    program: settings.get('program'),
    args: settings.get('args'),
    cwd: folder.uri.fsPath,
    onText: (text) => output.append(text),
    choose: async (prompt, options, token) => {
      const items = options.map((option) => ({ label: option.name, option }));
      const item = await vscode.window.showQuickPick(items, { placeHolder: prompt, ignoreFocusOut: true }, token);
      return item?.option;
    },
  });
}

async function prompt() {
  const message = await vscode.window.showInputBox({ prompt: 'Prompt for the agent' });
  if (!message) return;
  if (turnRuns) return void vscode.window.showErrorMessage('A turn is running; cancel it first');
  turnRuns = true;
  output.show(true);
  output.append(`\n> ${message}\n\n`);
  try {
    client ??= start();
    const failure = await client.prompt(message);
    if (failure) output.append(`\n[${failure}]\n`);
  } catch (error) {
    output.append(`\n[${error.message}]\n`);
    await stop(); // the next prompt starts acpipe again
  } finally {
    turnRuns = false;
  }
}

async function stop() {
  const stopped = client;
  client = undefined;
  await stopped?.stop();
}

exports.activate = ({ subscriptions }) => {
  output = vscode.window.createOutputChannel('acpipe', 'markdown');
  const commands = { 'acpipe.prompt': prompt, 'acpipe.cancel': () => client?.cancel(), 'acpipe.stop': stop };
  subscriptions.push(output, ...Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(name, run)));
};
exports.deactivate = stop;
