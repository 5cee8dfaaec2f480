/** Returns an exposition in one piece, for the web server. */
export async function pieces(text: string | Promise<string>): Promise<readonly Buffer[]> {
  return [Buffer.from(await text)];
}
