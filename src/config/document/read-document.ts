import { ConfigError } from '../config-error.ts';
import { readTextFile } from '../../files/read-file.ts';
import { readYaml, type YamlDocument } from './yaml-document.ts';

export interface FileDocument extends YamlDocument {
  readonly text: string;
}

/** Largest configuration file, in bytes. */
export const MAX_CONFIG_BYTES = 4 * 1024 * 1024;

/**
 * Reads a YAML file.
 * @param advice end of the message when the file cannot be read
 * @throws {ConfigError} `unreadable` or `syntax`
 */
export async function readDocument(
  file: string,
  maxBytes: number,
  advice: string,
): Promise<FileDocument> {
  const { text, fault } = readTextFile(file, maxBytes);
  if (fault !== undefined) {
    const message = fault === 'there is no such file' ? fault + advice : fault;
    throw new ConfigError('unreadable', [{ file, line: 1, column: 1, message }]);
  }
  const document = await readYaml(text);
  if ('syntaxFault' in document) {
    throw new ConfigError('syntax', [{ file, ...document.syntaxFault }]);
  }
  return { ...document, text };
}
