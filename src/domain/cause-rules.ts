const MASK = '<*>';

const ofFlags =
  (flags: string) =>
  (texts: TemplateStringsArray, ...values: readonly string[]): RegExp =>
    new RegExp(String.raw(texts, ...values), flags);
const exact = ofFlags('gu');
const anyCase = ofFlags('giu');

/** A character of a word, of a number, or of the name of a model, a file or a host. Excludes scripts without spaces. */
const W = String.raw`[A-Za-z\u00c0-\u052f\d_.+\-@/#%&~\\]`;

/** What these announce was written by a model, a judge or a user. */
const TEXTS =
  'outputs?|responses?|repl(?:y|ies)|answers?|completions?|verdicts?|generations?|thoughts?|utterances?|transcripts?|messages? of the (?:user|model)|got|found|said|wrote|Antwort|Ausgabe|réponse|sortie|respuesta|salida|risposta|resposta|ответа?|вывод';
const LABELS =
  'text|reference|rationale|reasoning|explanation|feedback|comment|query|question|excerpt|snippet|passage|sentence|score|rating|grade|expected|actual';
const UNSPACED_TEXTS = '输出|回复|回答|响应|答案|出力|応答|返答|응답|출력|답변';
/** Unless a reason follows the announcement. */
const REASON = String.raw`(?: |[45]\d\d\b|(?:[\w.]+ ){0,4}[\w.]*(?:error|exception|time[ds]?[ -]?out|fail|refused|reset|closed|denied|unavailable|exceed|overloaded|forbidden|unauthor|not found|missing|did not|does not|cannot|unable|truncated|limit|no such|invalid|unexpected|unknown|too (?:many|large|long)|required))`;
/** How a text begins that needs no announcement: as models speak, or in Markdown. */
const TALK = String.raw`(?:(?:I|I['’]m|My|Sure|Sorry|Here|As an AI|Based on|Overall|Yes(?=,)|No(?=,)|(?:The|This|Both|Neither) (?:assistant|answer|customer)s?)\b|\*\*|#+ |> )`;

/** Names follow these nouns. */
const NOUNS =
  'models?|deployments?|projects?|workspaces?|namespaces?|users?|customers?|datasets?|evaluators?|metrics?|criterion|Kriterium|judges?|graders?|scorers?|prompts?|samples?|items?|runs?|jobs?|tasks?|tests?|cases?|tools?|functions?|agents?|workers?|pods?|containers?|nodes?|queues?|tables?|collections?|columns?|fields?|files?|documents?|artifacts?|templates?|variables?|providers?|regions?|hosts?|services?|languages?|codecs?|splits?|environments?|secrets?|Modell|Projekt|modèle|projet|modelo|proyecto|модель';
/** These follow a name that its characters do not tell from another word. */
const VERBS =
  "(?:is|was|are|were|has|have|had|does|did|do|could|cannot|can|can't|may|must|will|would|raised|threw|lost|not|[a-z]{2,}ed|fails|returns|exceeds|ist|wurde|hat)";
const PREPOSITIONS = '(?:for|by|from|of|in|on|with|at|to|within|after|during)';
/** These stand where names do and are none. */
const NO_NAMES = String.raw`(?:${NOUNS}|${TEXTS}|${VERBS}|${PREPOSITIONS}|and|or|as|that|which|before|while|when|its?|an?|the|this|name|ids?|error|type|call|version|quota|limit|be|peer|server|client|input|unavailable|temporarily|requests?|identifier|length|size)(?![-\w.])`;

const EXTENSIONS =
  'jsonl?|ya?ml|csv|tsv|txt|md|pdf|png|jpe?g|webp|mp[34]|wav|py|[cm]?js|tsx?|java|rs|log|db|sqlite|zip|tar|gz|parquet|pt|bin|onnx|safetensors|gguf|html?|xml|toml|so|dll|sh|exe';
const TOP_LEVELS =
  'com|net|org|io|ai|dev|cloud|co|app|edu|gov|eu|us|uk|de|fr|internal|local|cluster|svc|corp|lan|example|test';
const UNITS =
  'ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|[kKMGT]i?B|[KMGT]i|[kmg]b|B|bytes|%|€|EUR|USD|Sekunden?|secondes?|segundos?|secondi|Minuten|minutos|с|сек|秒|분|초|GMT|UTC|AM|PM';
const DATES =
  '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}';

/** A status of HTTP, where the words around it show that it is one. */
const STATUS_BEFORE = String.raw`(?<=(?:^|(?<![Ee]xit )(?:[Hh]ttp|HTTP|[Ss]tatus|[Cc]ode|[Ee]rror|ERROR|[Ee]xception|[Rr]esponse|answered)\S{0,12}\W{1,3})...)(?! (?:items?|rows?|tokens?|bytes|samples?|ms|s)\b)`;
const STATUS_AFTER =
  '(?=[ :-]{1,3}(?:Bad|Client|Conflict|Forbidden|Gateway|Gone|Internal|Method|Not|Payload|Payment|Proxy|Request|Resource|Server|Service|Time|Too|Un))';
const STATUS = String.raw`[45]\d\d(?![\w.])(?:${STATUS_BEFORE}|${STATUS_AFTER}|(?<=\(...)(?=\)))`;

/** The name of a class with that of its module, such as `psycopg2.errors.UniqueViolation`. */
const CLASS = String.raw`(?:[a-z_]\w*\.)+[A-Z][A-Za-z]+(?![\w.])`;

/** Applied to a text one after the other, in this order. */
const RULES: readonly (readonly [what: RegExp, by: string])[] = [
  // Addresses, before their signs are taken for others.
  [
    exact`\b[A-Za-z][A-Za-z\d+.-]{1,15}://[^\s"'<>\x60)\]},，。）]*[^\s"'<>\x60)\]},，。）.:;]`,
    MASK,
  ],

  // Quotes that stay: a status with its name, the value of a key, and the argument of an exception.
  [exact`(["'])([1-5]\d\d [A-Z][A-Za-z' -]{1,40}?)\1(?!\p{L})`, '$2'],
  [
    exact`\b(message|msg|error|desc|details|reason|panicked at)(?: ?= ?| )(["'])([^"'{]{1,200})\2`,
    '$1: $3',
  ],
  [
    exact`((?:\b[A-Z]\w*(?:Error|Exception|Disconnected|Exceeded)|: |^)\((?:\d+, )?)(["'])([^"']{1,20} [^"']{1,300})\2(?=[,)])`,
    '$1$3',
  ],
  // All other quotes. One that is not closed masks the rest.
  [exact`\x60{3}.*|\x60[^\x60]*\x60?`, MASK],
  [exact`(?<![\p{L}\p{N}])b?"(?:[^"\\]|\\.|"(?=[\p{L}\p{N}]))*(?:"|$)`, MASK],
  [exact`(?<![\p{L}\p{N}])'(?:[^'\\]|\\.|'(?=\p{L}))*(?:'|$)`, MASK],
  [exact`[“„”«»‹›‘‚「『《〈][^“”«»‹›‘’」』》〉]*(?:[“”«»‹›‘’」』》〉]|$)`, MASK],

  // Objects, placeholders, and elements of markup.
  [exact`\$?\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\}?)*\}?)*\}?`, MASK],
  [exact`<[^<>]* at 0x[^<>]*>`, MASK],
  [exact`<([a-z_]\w*)>.*?</\1>`, MASK],

  // What a model, a judge or a user wrote.
  [exact`\b(errors? for|for type|into|of type) [A-Z]\w+`, `$1 ${MASK}`],
  [
    anyCase`((?<![-\w.])(?:${TEXTS})(?![-\w.])(?:[^:.,;(]|[:.,;](?=\S)){0,60}: |\b(?:${LABELS}): |(?:${UNSPACED_TEXTS})[^:：]{0,20}[:：] ?)(?!${REASON}).+`,
    `$1${MASK}`,
  ],
  [anyCase`\b((?:${TEXTS}|${LABELS}|raw)=)(?!<).+?(?= [\w.]+=|;|$)`, `$1${MASK}`],
  [exact`(: )${TALK}.*`, `$1${MASK}`],
  [exact`([a-z)>]: )(?!\p{sc=Latin})\p{L}.*`, `$1${MASK}`],
  [exact`\b(said|says) (?!<).+`, `$1 ${MASK}`],

  // Paths, mail addresses, hosts, files, addresses of IPv6, times, and keys.
  [exact`(?<!${W})(?:[A-Za-z]:\\|[~.]{0,2}/)[^\s"'<>,;)\]}]*[^\s"'<>,;)\]}.:]`, MASK],
  [exact`(?<!${W})${W}*@${W}+`, MASK],
  [exact`(?<!${W})(?=[^\s/]*/)(?:${W}*[/\\]${W}*[-_./\\]${W}+|${W}*[-_.]${W}*/${W}+)`, MASK],
  [exact`(?<!${W})[\w.+-]+\.(?:${EXTENSIONS})\b(?!\.)`, MASK],
  [exact`(?<!${W})(?:[a-z_-]+\.)+(?:${TOP_LEVELS}|[a-z_-]+(?<=\..*\..*))(?!${W}|\()`, MASK],
  [exact`\blocalhost\b(?::\d+)?(?:/[^\s"'),;:]*)?`, MASK],
  [exact`\b(from|to|at|on|host|lookup) [\w-]+(?=: ?(?:\d|no ))`, `$1 ${MASK}`],
  [exact`(?<![\w.])[\dA-Fa-f]{0,4}(?::[\dA-Fa-f]{0,4}){2,}(?![\w:])`, MASK],
  [exact`\b(?:sk|pk|ghp|hf)[-_]\S+[^\s"'),.:;]|(?<![^\s"'(])[^\s"'(]*(?:\*{3}|\.{3})[\w-]+`, MASK],
  [
    anyCase`((?:key|token|secret|password|passwd|bearer|basic)(?: provided)?(?:: ?| (?=\S{16}))|\bauthorization: \w+ )(?!<)[^\s"'),;]{6,}`,
    `$1${MASK}`,
  ],

  // Every word with a digit, except a status.
  [exact`(?<!${W})(?!${STATUS}|${CLASS})[$€£]?${W}*\d${W}*(?<![.])|${W}{80,}`, MASK],

  // Names.
  [
    anyCase`\b(${NOUNS})((?: id| name| called| named)?:? )(?!${NO_NAMES})(?:(?=${W}*[-_.]\w)${W}+|(?<!: )[\p{L}\p{N}]+(?=:? ${VERBS}\b|(?<![^s]s|ed|ing):? ${PREPOSITIONS}\b|[,;)]| \[|\.?$))`,
    `$1$2${MASK}`,
  ],
  [exact`\b(${PREPOSITIONS}) (?=\w*[-_])(?=\S*\p{Ll})[\p{L}_-]+`, `$1 ${MASK}`],
  [exact`\b(for) (?!${NO_NAMES})\p{L}+(?= (?:${VERBS}|from|on|at)\b|[;)]|$)`, `$1 ${MASK}`],
  [exact`\b(by|from|to|in) (?!${NO_NAMES})\p{L}+(?= ${VERBS}\b)`, `$1 ${MASK}`],
  [
    anyCase`\b((?:unknown|unsupported|invalid|unexpected|undefined|unrecognized)[^:]{0,40}: )[\w-]+$`,
    `$1${MASK}`,
  ],
  [exact`\b(token|character) \S(?!\S)`, `$1 ${MASK}`],
  [exact`(?<=[\w.>=])=(?![<=])(?:\[[^\]]*\]|[^\s,;:)\]}>&|]+)`, `=${MASK}`],
  [exact`\[[\w.-]+(?:, ?[\w.-]+)+\]`, MASK],
  [exact`(: )[\w.-]+(?:, [\w.-]+)+$`, `$1${MASK}`],

  // Units and the names of dates belong to their numbers. Several values in a row are one.
  [exact`(?:\b${DATES},? )+(?=<\*>)|(?<=<\*>,? )${DATES}\b`, ''],
  [exact`(?<=<\*>) ?(?:${UNITS})(?![\p{L}\p{N}])`, ''],
  [exact`\b\w+-[\w-]+:(?=<\*>)`, ''],
  [exact`<\*>(?:[ ,:;./|+&~<>#@$%_-]{0,4}<\*>)+`, MASK],
  [exact` {2,}`, ' '],
  [exact`[ .:]+$`, ''],
];

/** Returns a text of one line with `<*>` for everything that varies. */
export function maskText(text: string): string {
  return RULES.reduce((masked, [what, by]) => masked.replace(what, by), text);
}
