/** An exposition of one piece, as the web server is given it. */
export async function* pieces(text: string | Promise<string>): AsyncGenerator<Uint8Array> {
  yield Buffer.from(await text);
}
