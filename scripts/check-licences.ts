/** Checks the licences of the production packages. Exits 1 if one of them is not allowed. */
import { isAllowed } from './licences.ts';
import { shippedPackages } from './shipped-packages.ts';

const shipped = await shippedPackages();
const refused = shipped.filter(([, { license }]) => !isAllowed(license ?? ''));
for (const [path, { version, license }] of refused) {
  console.error(`${path} ${version}: licence ${license ?? 'unknown'}`);
}
if (refused.length > 0) {
  console.error('these licences are not in the list ALLOWED of scripts/licences.ts');
  process.exitCode = 1;
} else {
  console.log(`${shipped.length} packages, all with allowed licences`);
}
