import { readFileSync } from 'node:fs';
import { join } from 'node:path';

// package.json has the address of the repository. Everything else that names it gets it from here.

interface Package {
  readonly repository: { readonly url: string };
}

const root = join(import.meta.dirname, '..');
const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Package;

/** Address of the repository in a browser: `repository.url` of package.json without `git+` and `.git`. */
export const REPOSITORY = addressOf(repository.url);

/** Address to which the path of a file of the repository is appended. */
export const FILES_ADDRESS = `${REPOSITORY}/blob/main`;

/** Matches an address of this repository, by the text that follows only such an address. */
const NAMED_ADDRESS =
  /https:\/\/[^\s"'`<>()]+?(?=\/blob\/main\/|\/security\/advisories\/new\b|\/issues"|#readme"|\.git\s)/g;

/**
 * Returns the address in a `repository.url` such as `git+https://git.example.com/team/evalwatch.git`.
 * @throws {Error} if the url has another form
 */
export function addressOf(url: string): string {
  const [, address] = /^git\+(https:\/\/[^\s"'`<>()]+)\.git$/.exec(url) ?? [];
  if (address === undefined) {
    throw new Error(`repository.url of package.json must be git+https://….git, not ${url}`);
  }
  return address;
}

/**
 * Returns the text with `address` in the clone URL and in every link to a file, the README, the issues or the security
 * reports of the repository. The text must not link to another repository in these ways.
 */
export function withAddress(text: string, address: string): string {
  return text.replace(NAMED_ADDRESS, address);
}
