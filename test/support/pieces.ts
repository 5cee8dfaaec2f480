/** Yields an exposition in one piece, for the web server. */
export async function* pieces(text: string | Promise<string>): AsyncGenerator<Uint8Array> {
  yield Buffer.from(await text);
}
