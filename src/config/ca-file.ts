import { X509Certificate } from 'node:crypto';
import type { Checked } from './values/address.ts';
import { readTextFile } from './document/text-file.ts';

const MAX_BYTES = 16 * 1024 * 1024;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The text of a file of PEM certificates, each of them sound. */
export async function readCertificates(path: string): Promise<Checked<string>> {
  const { text, fault } = await readTextFile(path, MAX_BYTES);
  if (fault !== undefined) return { fault: `cannot be used: ${fault} (${path})` };
  const certificates = text.match(CERTIFICATE);
  if (certificates === null) {
    return { fault: `must be a file with certificates in PEM form, and ${path} has none` };
  }
  return certificates.every(isCertificate)
    ? { value: text }
    : { fault: `cannot be used: one of its certificates is damaged (${path})` };
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}
