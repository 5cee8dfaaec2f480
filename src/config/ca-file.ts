import { X509Certificate } from 'node:crypto';
import { readTextFile } from './text-file.ts';

const MAX_BYTES = 16 * 1024 * 1024;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** What is wrong with a file of PEM certificates; undefined if nothing is. */
export async function checkCaFile(path: string): Promise<string | undefined> {
  const { text, fault } = await readTextFile(path, MAX_BYTES);
  if (fault !== undefined) return `is of no use: ${fault}`;
  const certificates = text.match(CERTIFICATE);
  if (certificates === null) return 'must be a file with certificates in PEM form';
  return certificates.every(isCertificate)
    ? undefined
    : 'is of no use: one of its certificates is damaged';
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}
