#!/usr/bin/env node
// Here before the build is, so that npm can link it in a fresh checkout.
import '../dist/main.js';
