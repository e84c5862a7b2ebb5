// As much of the editor as the extension uses: what it is given is kept, for tests to look at.
"use strict";

const Module = require("node:module");

class Range {
  constructor(startLine, startColumn, endLine, endColumn) {
    Object.assign(this, { startLine, startColumn, endLine, endColumn });
  }
}

class Diagnostic {
  constructor(range, message, severity) {
    Object.assign(this, { range, message, severity });
  }
}

function disposable() {
  return { dispose() {} };
}

/** Returns an editor with nothing open. */
function createEditor() {
  const kept = { commands: {}, diagnostics: new Map(), errors: [], status: [], terminals: [], listeners: {} };
  const settings = {};
  const listens = (name) => (listener) => {
    kept.listeners[name] = listener;
    return disposable();
  };
  const vscode = {
    Range,
    Diagnostic,
    Location: class { constructor(uri, range) { Object.assign(this, { uri, range }); } },
    DiagnosticRelatedInformation: class { constructor(location, message) { Object.assign(this, { location, message }); } },
    DebugAdapterExecutable: class { constructor(command, args, options) { Object.assign(this, { command, args, options }); } },
    ThemeColor: class { constructor(id) { this.id = id; } },
    DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2 },
    OverviewRulerLane: { Right: 4 },
    ProgressLocation: { Notification: 15 },
    Uri: { file: (fsPath) => ({ scheme: "file", fsPath }) },
    languages: {
      createDiagnosticCollection: () => ({
        set: (uri, shown) => kept.diagnostics.set(uri.fsPath, shown),
        clear: () => kept.diagnostics.clear(),
        ...disposable(),
      }),
    },
    workspace: {
      workspaceFolders: undefined,
      getConfiguration: () => ({ get: (name) => settings[name] }),
      onDidChangeTextDocument: listens("change"),
      onDidSaveTextDocument: listens("save"),
    },
    window: {
      activeTextEditor: undefined,
      visibleTextEditors: [],
      withProgress: (_, work) =>
        work(null, { onCancellationRequested: (cancel) => kept.cancelAtOnce && setImmediate(cancel) }),
      showErrorMessage: (text) => kept.errors.push(text),
      setStatusBarMessage: (text) => kept.status.push(text),
      createTextEditorDecorationType: () => disposable(),
      createTerminal: (options) => {
        const terminal = { ...options, sent: [], show() {}, sendText: (text) => terminal.sent.push(text) };
        kept.terminals.push(terminal);
        return terminal;
      },
      onDidChangeVisibleTextEditors: listens("visible"),
    },
    commands: {
      registerCommand: (name, run) => {
        kept.commands[name] = run;
        return disposable();
      },
      executeCommand: (name) => kept.commands[name](),
    },
    debug: {
      registerDebugAdapterDescriptorFactory: (type, factory) => {
        kept.adapter = factory;
        return disposable();
      },
      registerDebugConfigurationProvider: (type, provider) => {
        kept.configurations = provider;
        return disposable();
      },
    },
  };
  /** Opens a file as the one that is looked at. */
  kept.open = (fsPath) => {
    const editor = {
      document: { uri: vscode.Uri.file(fsPath) },
      decorations: [],
      setDecorations: (_, shown) => (editor.decorations = shown),
    };
    vscode.window.activeTextEditor = editor;
    vscode.window.visibleTextEditors = [editor];
    return editor;
  };
  return { vscode, kept, settings };
}

/** Returns the extension, loaded into an editor. */
function load(editor) {
  const original = Module._load;
  Module._load = (request, ...rest) => (request === "vscode" ? editor.vscode : original(request, ...rest));
  try {
    delete require.cache[require.resolve("../extension")];
    const extension = require("../extension");
    extension.activate({ subscriptions: [] });
    return extension;
  } finally {
    Module._load = original;
  }
}

module.exports = { createEditor, load };
