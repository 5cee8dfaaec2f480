import { execFile } from 'node:child_process';
import { cp, glob, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { debianTool } from '../../support/debian-tool.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { CONFIG, type Manifest } from './repository.ts';

const run = promisify(execFile);
const kubectl = debianTool('kubernetes-client', 'kubectl');
if (kubectl === undefined) console.warn('no kubectl here: the kustomizations were not rendered');
/** In CI the tests fail where kubectl is missing, instead of being skipped. */
export const canRender = kubectl !== undefined || process.env['CI'] === 'true';

/** Whether kubectl has kustomize 2.0.3, which lacks newer fields. That of Debian 12 has it. */
export const isOldKubectl = kubectl !== undefined && (await minorVersion(kubectl)) < 21;

async function minorVersion(program: string): Promise<number> {
  const { stdout } = await run(program, ['version', '--client', '-o', 'json']);
  const { clientVersion } = JSON.parse(stdout) as { readonly clientVersion: { minor: string } };
  return Number.parseInt(clientVersion.minor, 10);
}

/**
 * Renders a kustomization as `kubectl apply -k` does, and fails if kubectl warns.
 * @param directory below config/
 * @param further files to add to it, by name
 */
export async function render(
  directory: string,
  further: Readonly<Record<string, string>> = {},
): Promise<readonly Manifest[]> {
  await using copy = await temporaryDirectory();
  for (const part of ['kubernetes', 'grafana']) {
    await cp(join(CONFIG, part), join(copy.path, 'config', part), { recursive: true });
  }
  const place = join(copy.path, 'config', directory);
  for (const [name, text] of Object.entries(further)) await writeFile(join(place, name), text);
  if (isOldKubectl) await translate(copy.path);
  const options = { maxBuffer: 16 * 1024 * 1024 };
  const { stdout, stderr } = await run(String(kubectl), ['kustomize', place], options);
  if (stderr !== '') throw new Error(stderr);
  return parseAllDocuments(stdout).map((each) => each.toJS() as Manifest);
}

interface Kustomization {
  readonly resources?: readonly string[];
  readonly patches?: readonly { readonly path: string }[];
  readonly labels?: unknown;
}

/** Rewrites the kustomizations with the field names of kustomize 2.0.3, which has no `labels`. */
async function translate(root: string): Promise<void> {
  for await (const file of glob('**/kustomization.yaml', { cwd: root })) {
    const path = join(root, file);
    const {
      resources = [],
      patches,
      labels: _,
      ...others
    } = parse(await readFile(path, 'utf8')) as Kustomization;
    const directories: string[] = [];
    for (const name of resources) {
      if ((await stat(join(dirname(path), name))).isDirectory()) directories.push(name);
    }
    const old = {
      ...others,
      bases: directories,
      resources: resources.filter((name) => !directories.includes(name)),
      ...(patches && { patchesStrategicMerge: patches.map(({ path: patch }) => patch) }),
    };
    await writeFile(path, stringify(old));
  }
}
