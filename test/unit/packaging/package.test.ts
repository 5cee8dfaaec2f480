import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { isAllowed, shippedPackages } from '../../../scripts/package.ts';

const generator = fileURLToPath(new URL('../../../scripts/package.ts', import.meta.url));

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses: readonly unknown[];
  readonly hashes?: readonly unknown[];
}

it('the SBOM lists exactly the shipped packages, each with purl, licence and hash', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [generator, 'sbom']);
  const bill = JSON.parse(stdout) as { readonly components: readonly Component[] };
  expect(bill).toMatchObject({
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    metadata: { component: { name: 'evalwatch', type: 'application' } },
  });
  const shipped = (await shippedPackages()).map(
    ([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`,
  );
  expect(shipped).toEqual(expect.arrayContaining([expect.stringMatching(/^yaml@/)]));
  const listed = bill.components.map(({ name, version }) => `${name}@${version}`);
  expect(listed.toSorted()).toEqual(shipped.toSorted());
  const incomplete = bill.components.filter(
    ({ purl, licenses, hashes = [] }) =>
      !purl.startsWith('pkg:npm/') || licenses.length === 0 || hashes.length === 0,
  );
  expect(incomplete).toEqual([]);
});

it.each([
  ['MIT', true],
  ['(MIT OR GPL-3.0)', true],
  ['GPL-3.0 OR ISC', true],
  ['', false],
  ['GPL-3.0', false],
  ['MITX', false],
  ['MIT AND GPL-3.0', false],
  ['(MIT OR Apache-2.0) AND GPL-3.0', false],
  ['(MIT OR Apache-2.0) and GPL-3.0', false],
  ['(MIT OR Apache-2.0)AND GPL-3.0', false],
  ['GPL-3.0 AND (MIT OR Apache-2.0)', false],
])('isAllowed evaluates the licence expression "%s"', (license, expected) => {
  expect(isAllowed(license)).toBe(expected);
});
