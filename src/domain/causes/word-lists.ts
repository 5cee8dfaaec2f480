/** Nouns that a name follows: `model gpt-x`, `for user alice`, `unknown metric: tone`. */
export const NAMED = new Set(
  (
    'model models deployment engine user users project organization organisation org workspace tenant account team ' +
    'host hostname server node pod container image bucket table database dataset collection index namespace queue ' +
    'topic file directory folder module package job task run worker experiment prompt evaluator judge metric scorer ' +
    'grader criterion rubric tool function column key parameter attribute region zone endpoint resource role service ' +
    'secret variable named provider profile policy stage step suite case schema class category ' +
    'field type format template evaluation severity probability capability plan tier environment owner ' +
    'language locale flag subject sample voice plugin agent shard partition event skill intent constant option adapter ' +
    'modèle projet utilisateur modell projekt benutzer modelo proyecto usuario projeto usuário модель модели проект ' +
    'проекта пользователь пользователя 모델 프로젝트 사용자'
  ).split(' '),
);

/** Words that follow such a noun without being a name. */
export const NO_NAMES = new Set(
  (
    'a an the this that and or but not no nor is are was were be been being has have had does do did can could will ' +
    'would may might must should shall with without for from in into on of to at by as if than then when while after ' +
    'before during due via per since until because which who whose where already still never too only just also ' +
    'id ids name names key keys type types version value values error errors failure input output response request ' +
    'requests result results call calls limit limits quota usage access count size length list info data set group ' +
    'message messages content text file files path url uri format config configuration settings server service side ' +
    'peer remote client host user users default design proxy system provider policy filter filters administrator ' +
    'application itself network caller admission ' +
    'said says gave unknown missing failed exists found returned timed produced exceeded refused denied'
  ).split(' '),
);

export const PREPOSITIONS = new Set(
  'for by of from in to on as with at invalid unknown'.split(' '),
);

/** What follows one of these and a colon is the text of a model or of a user. */
export const LABELS = new Set(
  (
    'output outputs response responses completion completions answer answers reply generation prediction prompt ' +
    'question transcript snippet excerpt utterance verdict rationale reasoning explanation justification got received ' +
    'said says replied responded returned wrote refused refusal raw text content from in near of about like body ' +
    'payload document passage input sentence comment feedback review critique remark summary translation instruction ' +
    'instructions claim statement caption essay paragraph query dialogue conversation opinion judgement judgment ' +
    'example json user assistant human student customer speaker expected actual reference candidate hypothesis ' +
    '输出 响应 回复 回答 返回 内容 出力 応答 回答 返答 출력 응답 답변'
  ).split(' '),
);

/** Words between a label and its colon. */
export const LABEL_ENDS = new Set(
  'was is were are text body content follows received below truncated string preview tail head'.split(
    ' ',
  ),
);

/** Before `input:`, these say that the reason follows, not the input. */
export const REASON_FOLLOWS = new Set(
  'invalid bad malformed unsupported illegal unexpected incorrect wrong error'.split(' '),
);
export const AMBIGUOUS_LABELS = new Set(
  'input content text body document prompt payload json of in'.split(' '),
);

/** Headings that say nothing without the next line. */
export const HEADINGS = new Set(
  'error exception failed failure fatal warning stderr stdout critical panic details'.split(' '),
);

/** Keys whose value says what happened. */
export const TELLING_KEYS = new Set(
  'msg message error err reason desc description detail details cause exception errormessage error_message'.split(
    ' ',
  ),
);
export const STATUS_KEYS = new Set(
  'status code status_code statuscode error_code errorcode'.split(' '),
);

/** After these a number from 400 to 599 is a status. */
export const STATUS_WORDS = new Set(
  'status status_code statuscode http https code error http_status httpstatus'.split(' '),
);
/** After these it is one if no counted noun follows. */
export const MAYBE_STATUS_WORDS = new Set(
  'got received returned with response responded answered replied failed'.split(' '),
);
/** Before `code` these say that it is another code. */
export const OTHER_CODES = new Set(
  'exit exited return process signal line port pid errno'.split(' '),
);

export const DAYS_AND_MONTHS = new Set(
  (
    'Mon Tue Wed Thu Fri Sat Sun Monday Tuesday Wednesday Thursday Friday Saturday Sunday Jan Feb Mar Apr May Jun Jul ' +
    'Aug Sep Sept Oct Nov Dec January February March April June July August September October November December'
  ).split(' '),
);

/** Words that vary wherever they stand: days, numbers, and the host of everybody. */
export const VARYING_WORDS = new Set(
  (
    'Monday Tuesday Wednesday Thursday Friday Saturday Sunday two three four five six seven eight nine ten eleven ' +
    'twelve twenty localhost True False'
  ).split(' '),
);

/** Units and zones that change with their number. */
export const UNITS = new Set(
  (
    'B KB MB GB TB KiB MiB GiB TiB kB bytes byte ms us µs μs ns s sec secs second seconds min mins minute minutes h hr ' +
    'hrs hour hours day days GMT UTC AM PM am pm EST EDT PST PDT CET CEST JST'
  ).split(' '),
);

/** Verbs that, together with a label, announce the text that they failed on. */
export const READING_VERBS = new Set(
  'following parse extract interpret read decode understand find found classify grade convert match recognise recognize'.split(
    ' ',
  ),
);
export const SPOKEN = new Set(
  (
    'output completion answer reply response verdict transcript utterance generation essay paragraph summary ' +
    'translation critique rationale explanation statement claim opinion judgement judgment comment feedback ' +
    'antwort ausgabe réponse sortie respuesta salida resposta risposta odpowiedź odpowiedzi ответ ответа رد'
  ).split(' '),
);
/** After these a colon is followed by the reason. */
export const FAILURES = new Set(
  (
    'error errors failed failure failing fails invalid rejected exceeded missing timeout timed aborted blocked refused ' +
    'denied not cannot no unable could broken unexpected unsupported malformed closed ended exception ' +
    'interrupted cancelled canceled crashed lost unavailable mismatch violation warning fatal'
  ).split(' '),
);

/** Verbs whose object is a text, which may follow a colon. */
export const TEXT_VERBS = new Set(
  (
    'translate summarise summarize transcribe paraphrase rewrite moderate tokenize tokenise produced generated emitted ' +
    'hallucinated uttered said replied answered responded wrote'
  ).split(' '),
);
/** Nouns that the name of a person follows. */
export const PERSONS = new Set(
  'user customer student patient author speaker reviewer annotator'.split(' '),
);

/** With one of these before it, `message:` is followed by its text. */
export const OWNERS = new Set(
  'user customer assistant chat last first previous next raw original input human'.split(' '),
);

/** What these announce may be the error answer of a service, and not the text of a model. */
export const ANSWERED = new Set(
  'response responses body payload raw received got returned content message'.split(' '),
);
