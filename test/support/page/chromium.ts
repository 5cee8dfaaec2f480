import { debianTool } from '../debian-tool.ts';

/**
 * Where Chromium is; undefined where there is none and it cannot be installed. The one that has no windows takes half of the
 * CPU time, but not every Debian has it.
 */
export const chromiumPath =
  debianTool('chromium-headless-shell', 'chromium-headless-shell', 'chromium') ??
  debianTool('chromium', 'chromium');
