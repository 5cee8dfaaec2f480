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

/** Address under which the files of the repository are, by their paths. */
export const FILES_ADDRESS = `${REPOSITORY}/blob/main`;

/** An address that is followed by what only an address of this repository has. */
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
 * Returns a text with `address` in every link to a file of the repository, to its issues, its page for reports of
 * vulnerabilities and its clone. The text must link no other repository in these ways.
 */
export function withAddress(text: string, address: string): string {
  return text.replace(NAMED_ADDRESS, address);
}
