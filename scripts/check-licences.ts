/** Checks the licences of the production packages. Exits 1 if one of them is not allowed. */
import { shippedPackages } from './shipped-packages.ts';

/** Licences that require only their notice. */
const ALLOWED = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD']);

/** One allowed licence of an OR expression such as `(MIT OR Apache-2.0)` is enough. An AND is refused, for a person to review. */
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
  console.error('these licences are not in the list ALLOWED of scripts/check-licences.ts');
  process.exitCode = 1;
} else {
  console.log(`${shipped.length} packages, all with allowed licences`);
}
