// opkit in the editor: the debugger's adapter, findings as problems, times beside the lines.
"use strict";

const path = require("node:path");
const vscode = require("vscode");
const { debugArguments, resolveFile } = require("./lib/arguments");
const { annotation, findingRows, profileRows, summary } = require("./lib/reports");
const { runJson } = require("./lib/run");

const command = () => vscode.workspace.getConfiguration("opkit").get("command") || "opkit";

/** The folder of the file that is looked at, or of the workspace: opkit finds the project above it. */
function currentFolder() {
  const document = vscode.window.activeTextEditor?.document;
  if (document && document.uri.scheme === "file") return path.dirname(document.uri.fsPath);
  const folder = vscode.workspace.workspaceFolders?.[0];
  if (!folder) throw new Error("open a file of an operator project first");
  return folder.uri.fsPath;
}

/** Runs opkit behind a progress notice with Cancel; shows what it says where it cannot. */
async function report(title, options, folder) {
  let wasCancelled = false;
  const settings = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  try {
    return await vscode.window.withProgress(settings, (_, token) =>
      runJson(command(), options, folder, (end) =>
        token.onCancellationRequested(() => {
          wasCancelled = true;
          end();
        }),
      ),
    );
  } catch (error) {
    if (wasCancelled) return undefined;
    throw error;
  }
}

function lineRange(line) {
  return new vscode.Range(Math.max(0, line - 1), 0, Math.max(0, line - 1), Number.MAX_SAFE_INTEGER);
}

class Findings {
  constructor() {
    this.collection = vscode.languages.createDiagnosticCollection("opkit");
  }

  async check() {
    const folder = currentFolder();
    this.collection.clear();
    try {
      const found = await report("opkit check", ["check"], folder);
      if (!found) return;
      this.show(folder, findingRows(found).map((row) => this.diagnostic(folder, row)));
      const text = found.clean ? "no findings" : `${found.findings.length} findings`;
      vscode.window.setStatusBarMessage(`opkit check: ${text}`, 8000);
    } catch (error) {
      this.show(folder, (error.diagnostics ?? []).map(compilerDiagnostic));
      vscode.window.showErrorMessage(`opkit check: ${error.message}`);
    }
  }

  diagnostic(folder, row) {
    const severity = row.isNote ? vscode.DiagnosticSeverity.Information : vscode.DiagnosticSeverity.Error;
    const shown = new vscode.Diagnostic(lineRange(row.line), row.text, severity);
    shown.source = "opkit check";
    shown.code = row.id;
    const other = row.other && row.other.file ? resolveFile(folder, row.other.file) : undefined;
    if (other) {
      const place = new vscode.Location(vscode.Uri.file(other), lineRange(row.other.line));
      const text = `the other access: ${row.other.instruction || "here"}`;
      shown.relatedInformation = [new vscode.DiagnosticRelatedInformation(place, text)];
    }
    return { file: row.file, shown };
  }

  show(folder, entries) {
    const byFile = new Map();
    for (const { file, shown } of entries) {
      const found = resolveFile(folder, file);
      if (found) byFile.set(found, [...(byFile.get(found) ?? []), shown]);
    }
    for (const [file, shown] of byFile) this.collection.set(vscode.Uri.file(file), shown);
  }
}

function compilerDiagnostic(row) {
  const severity = row.severity === "error" ? vscode.DiagnosticSeverity.Error : vscode.DiagnosticSeverity.Warning;
  const shown = new vscode.Diagnostic(lineRange(row.line), row.message, severity);
  shown.source = "opkit build";
  return { file: row.file, shown };
}

class Times {
  constructor() {
    this.type = vscode.window.createTextEditorDecorationType({
      after: { margin: "0 0 0 3em", color: new vscode.ThemeColor("editorCodeLens.foreground") },
      overviewRulerLane: vscode.OverviewRulerLane.Right,
      overviewRulerColor: new vscode.ThemeColor("charts.orange"),
      isWholeLine: true,
    });
    this.byFile = new Map();
  }

  async profile() {
    const folder = currentFolder();
    const found = await report("opkit profile", ["profile", "--lines", "100000"], folder);
    if (!found) return;
    this.byFile.clear();
    for (const row of profileRows(found)) {
      const file = resolveFile(folder, row.file);
      if (file) this.byFile.set(file, [...(this.byFile.get(file) ?? []), row]);
    }
    vscode.window.visibleTextEditors.forEach((editor) => this.show(editor));
    vscode.window.setStatusBarMessage(`opkit profile: ${summary(found)}`, 15000);
  }

  show(editor) {
    const rows = this.byFile.get(editor.document.uri.fsPath) ?? [];
    const shown = rows.map((row) => ({
      range: lineRange(row.line),
      hoverMessage: row.parts.join("\n\n"),
      renderOptions: { after: { contentText: annotation(row) } },
    }));
    editor.setDecorations(this.type, shown);
  }

  clear() {
    this.byFile.clear();
    vscode.window.visibleTextEditors.forEach((editor) => this.show(editor));
  }
}

const adapter = {
  createDebugAdapterDescriptor(session) {
    const given = session.configuration;
    const folder = given.cwd || session.workspaceFolder?.uri.fsPath;
    return new vscode.DebugAdapterExecutable(command(), debugArguments(given), folder ? { cwd: folder } : undefined);
  },
};

const configurations = {
  /** Without a launch.json the project of the file that is looked at is debugged. */
  resolveDebugConfiguration(_, given) {
    if (given.type) return given;
    return { type: "opkit", request: "launch", name: "opkit: a kernel", project: currentFolder() };
  },
};

function activate(context) {
  const findings = new Findings();
  const times = new Times();
  const named = {
    "opkit.check": () => findings.check(),
    "opkit.profile": () => times.profile(),
    "opkit.test": () => {
      const terminal = vscode.window.createTerminal({ name: "opkit test", cwd: currentFolder() });
      terminal.show();
      terminal.sendText(`${command()} test`);
    },
    "opkit.clear": () => {
      findings.collection.clear();
      times.clear();
    },
  };
  for (const [name, action] of Object.entries(named)) {
    const run = async () => {
      try {
        await action();
      } catch (error) {
        vscode.window.showErrorMessage(`${name.replace(".", " ")}: ${error.message}`);
      }
    };
    context.subscriptions.push(vscode.commands.registerCommand(name, run));
  }
  context.subscriptions.push(
    findings.collection,
    times.type,
    vscode.debug.registerDebugAdapterDescriptorFactory("opkit", adapter),
    vscode.debug.registerDebugConfigurationProvider("opkit", configurations),
    vscode.window.onDidChangeVisibleTextEditors((editors) => editors.forEach((editor) => times.show(editor))),
    // A line that was edited no longer is the one that was timed.
    vscode.workspace.onDidChangeTextDocument((event) => {
      if (event.contentChanges.length && times.byFile.delete(event.document.uri.fsPath)) {
        vscode.window.visibleTextEditors.forEach((editor) => times.show(editor));
      }
    }),
    vscode.workspace.onDidSaveTextDocument((document) => {
      const wanted = vscode.workspace.getConfiguration("opkit").get("checkOnSave");
      const isKernel = path.basename(path.dirname(document.uri.fsPath)) === "op_kernel";
      if (wanted && isKernel) vscode.commands.executeCommand("opkit.check");
    }),
  );
}

module.exports = { activate, deactivate() {} };
