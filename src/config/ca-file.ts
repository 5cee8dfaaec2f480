import { X509Certificate } from 'node:crypto';
import type { Checked } from './values/address.ts';
import { readTextFile } from './document/text-file.ts';

const MAX_BYTES = 16 * 1024 * 1024;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The text of a file of PEM certificates, each of them sound. */
export async function readCertificates(path: string): Promise<Checked<string>> {
  const { text, fault } = await readTextFile(path, MAX_BYTES);
  if (fault !== undefined) return { fault: `${JSON.stringify(path)} cannot be read: ${fault}` };
  const certificates = text.match(CERTIFICATE);
  if (certificates === null) {
    return { fault: `${JSON.stringify(path)} is not a PEM file: no certificate found` };
  }
  const damaged = certificates.findIndex((certificate) => !isCertificate(certificate));
  if (damaged === -1) return { value: text };
  const which = `${damaged + 1} of ${certificates.length}`;
  return { fault: `${JSON.stringify(path)} has a damaged certificate (${which})` };
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}
