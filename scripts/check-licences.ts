/** Tells, by its exit code, whether all that is shipped may be: the licences of the production packages. */
import { shippedPackages } from './shipped-packages.ts';

/** Licences that ask for nothing but their notice. */
const ALLOWED = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD']);

/** Of an expression such as `(MIT OR Apache-2.0)` one is enough; an AND is for a person to read. */
function isAllowed(license: string | undefined): boolean {
  const choices = license?.replaceAll(/[()]/g, '').split(' OR ') ?? [];
  return choices.some((choice) => ALLOWED.has(choice.trim()));
}

const shipped = await shippedPackages();
const refused = shipped.filter(([, { license }]) => !isAllowed(license));
for (const [path, { version, license }] of refused) {
  console.error(`${path} ${version}: licence ${license ?? 'unknown'}`);
}
if (refused.length > 0) {
  console.error('not on the list of scripts/check-licences.ts');
  process.exitCode = 1;
} else {
  console.log(`${shipped.length} packages: their licences are on the list`);
}
