import { readFileSync } from 'node:fs';

/** The version in package.json, which lies beside both src/ and dist/. */
export const version = readVersion();

function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const manifest: { readonly version: string } = JSON.parse(text);
  return manifest.version;
}
