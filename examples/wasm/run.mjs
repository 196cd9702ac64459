// SPDX-License-Identifier: BSL-1.0
// node --no-warnings run.mjs PROGRAM.wasm ARGUMENTS...: runs a program for WASI, which sees the files of this folder.
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { WASI } from 'node:wasi';

const [program, ...args] = process.argv.slice(2);
const wasi = new WASI({ version: 'preview1', args: [program, ...args], preopens: { '.': '.' }, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi.wasiImport });
try {
  process.exitCode = wasi.start(instance);
} catch (fault) {
  if (!(fault instanceof WebAssembly.RuntimeError)) throw fault;
  process.exitCode = 134; // it aborted, and has said why
}
