// Builds dist/index.html, dist/app.js and dist/app.css: fixed names, because acpipe embeds these three files.
import { defineConfig } from 'vite';

export default defineConfig({
  base: '/',
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rolldownOptions: {
      // 'use client' of packages that also run on servers means nothing here.
      checks: { moduleLevelDirective: false },
      output: {
        entryFileNames: 'app.js',
        assetFileNames: 'app[extname]',
        codeSplitting: false,
      },
    },
  },
});
