import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

interface Asset {
  /** Path under `/assets/`, with a digest of the content: the content of a path never changes. */
  readonly path: string;
  readonly type: string;
  readonly body: string;
}

export interface Assets {
  readonly style: Asset;
  readonly script: Asset;
  readonly icon: Asset;
}

/** Reads the stylesheet, the script and the icon from the folder beside this file. */
export function loadAssets(): Assets {
  return {
    style: asset(new URL('assets/style.css', import.meta.url), 'text/css'),
    script: asset(new URL('assets/live.js', import.meta.url), 'text/javascript'),
    icon: asset(new URL('assets/icon.svg', import.meta.url), 'image/svg+xml'),
  };
}

function asset(file: URL, type: string): Asset {
  const body = readFileSync(file, 'utf8');
  const digest = createHash('sha256').update(body).digest('hex').slice(0, 16);
  const [base, extension] = file.pathname.slice(file.pathname.lastIndexOf('/') + 1).split('.');
  return { path: `assets/${base}-${digest}.${extension}`, type: `${type}; charset=utf-8`, body };
}
