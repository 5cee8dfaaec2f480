import { globSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { MAX_TEXT_LENGTH } from './options.ts';
import type { Located } from './faults.ts';
import { type Path, readYamlOf, type Shape, type Tree, type YamlFile } from './yaml.ts';

// Files that have more projects than the configuration file (docs/specification.md#projects-files).

/** A list of projects. An empty file is none: it can be one that is being written. */
const PROJECTS: Shape<readonly unknown[]> = {
  read: (value) => (Array.isArray(value) ? value : undefined),
  fault: 'the file must be a list of projects (- id: ID); write [] for none',
};

/** Whether a pattern names files of one directory: it has stars in the name only. */
export function isPattern(pattern: string): boolean {
  return !dirname(pattern).includes('*') && !/[?[\]{}!]/.test(basename(pattern));
}

/**
 * Returns the absolute paths of the files that patterns name, each once, in the order of the patterns and of their names. A
 * pattern without a star names its file whether or not there is one. Names that begin with a dot need a pattern that does.
 * @param directory where relative patterns start
 */
export function findFiles(patterns: readonly string[], directory: string): readonly string[] {
  const found = patterns.flatMap((pattern) => {
    if (!pattern.includes('*')) return [resolve(directory, pattern)];
    const folder = resolve(directory, dirname(pattern));
    const names = globSync(basename(pattern), { cwd: folder });
    return names.toSorted().map((name) => resolve(folder, name));
  });
  return [...new Set(found)];
}

/** A configuration file with the projects of the files that it names. */
export interface WholeFile extends Located {
  readonly tree: Tree;
  /** The projects files that were read. */
  readonly files: readonly YamlFile<readonly unknown[]>[];
  /** Returns the file of a project. */
  readonly fileOf: (project: number) => string;
}

/**
 * Reads the files of `projects_files`, and adds their projects to those of the configuration file.
 * @throws {ConfigError} with the first error only, if one of them cannot be read, is not YAML or is no list
 */
export async function addProjectsFiles(main: YamlFile, maxBytes: number): Promise<WholeFile> {
  const { projects_files: patterns } = main.tree;
  const names = (Array.isArray(patterns) ? patterns : []).filter(
    (pattern: unknown): pattern is string =>
      typeof pattern === 'string' && pattern.length <= MAX_TEXT_LENGTH && isPattern(pattern),
  );
  const files: YamlFile<readonly unknown[]>[] = [];
  for (const file of findFiles(names, dirname(main.file))) {
    files.push(await readYamlOf(PROJECTS, file, maxBytes, '; it is named by projects_files'));
  }
  const own: unknown = main.tree['projects'] ?? [];
  // Anything else is an error of the configuration file.
  const first: readonly unknown[] | undefined = Array.isArray(own) ? own : undefined;
  const added = files.flatMap((yaml) =>
    yaml.tree.map((project, index) => ({ yaml, project, index })),
  );

  /** Returns the file that has a path, and the path in it. */
  function placeOf(path: Path): readonly [yaml: YamlFile<unknown>, path: Path] {
    const [section, project, ...rest] = path;
    const isOfProject = section === 'projects' && typeof project === 'number' && first;
    const place = isOfProject ? added[project - first.length] : undefined;
    return place === undefined ? [main, path] : [place.yaml, [place.index, ...rest]];
  }

  return {
    file: main.file,
    files,
    tree:
      first && files.length > 0
        ? { ...main.tree, projects: [...first, ...added.map(({ project }) => project)] }
        : main.tree,
    faults: [main, ...files].flatMap(({ faults }) => faults),
    locate: (path) => {
      const [yaml, inFile] = placeOf(path);
      return yaml.locate(inFile);
    },
    locateKey: (path) => {
      const [yaml, inFile] = placeOf(path);
      return yaml.locateKey(inFile);
    },
    ownPath: (path) => placeOf(path)[1],
    fileOf: (project) => placeOf(['projects', project])[0].file,
  };
}
