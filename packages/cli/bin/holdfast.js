#!/usr/bin/env node
// This file is in the repository, so that npm can link it in a fresh checkout, before the build.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major > 22 || (major === 22 && minor >= 19)) await import('../dist/main.js');
else {
  console.error(`holdfast: needs Node 22.19 or newer, this is Node ${process.versions.node}.`);
  process.exitCode = 3;
}
