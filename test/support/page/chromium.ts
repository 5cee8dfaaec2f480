import { debianTool } from '../debian-tool.ts';

/**
 * Path of Chromium; undefined if it is missing and cannot be installed. The headless shell takes half of the CPU time, but
 * not every Debian has it.
 */
export const chromiumPath =
  debianTool('chromium-headless-shell', 'chromium-headless-shell', 'chromium') ??
  debianTool('chromium', 'chromium');
