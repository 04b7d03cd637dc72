"""Changes of a C source that a rule makes: mutants(text) returns them.

The lexer is simple, and is the definition:

    tokens       names, numbers, strings, operators. Comments and lines of the preprocessor are blanks, both sides of an
                 #if are code.
    functions    a brace outside of all braces after a ")" begins one.
    statements   a block; if, else, while, for, do and switch with their statements; a label; a jump (return, break,
                 continue, goto); a declaration, that is two names, or a name and stars and a name, before "=", ";", ","
                 or "["; and all else, up to its semicolon.

The rules:

    weaken    an order among the arguments of a call becomes one step weaker: acquire and release relaxed, acq_rel
              acquire and release, seq_cst acq_rel
    drop      a statement, a jump without a value, or an if that jumps, is left out
    guard     the condition of an if is left out: its statement is always carried out
    swap      two neighbours change places, if each calls something or accesses memory by a pointer, and one calls
    move      a statement is moved across the next but one that locks, unlocks, stores, wakes, or fences
    hoist     a statement that reads by a pointer or loads is carried out before the if, loop or switch before it, or
              before the one that it is the first statement of
    operand   one operand of "&&", "||" or "|", or the right operand of "+" or "-", is left out

Assertions, casts to void and BIDE_OBSERVE_ are not changed: no finding depends on them. A change keeps the number of lines.
"""
import re

TOKEN = re.compile(r'''[A-Za-z_]\w*|\.?\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|'''
                   r"->|\+\+|--|<<=|>>=|<<|>>|&&|\|\||[-+*/%&|^!=<>]=|\S")
BLANK = re.compile(r'''/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|'''
                   r"^[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.S | re.M)
DECLARATION = re.compile(r"^(?:(?:const|static|struct|enum|union|unsigned|signed|volatile) )*"
                         r"(?:bide_atomic \( [^)]* \) |\w+ )(?:\* |const )*(?!\d)\w+ (?:=|;|,|\[)")
UNTOUCHED = re.compile(r"^(?:bide_assert|BIDE_OBSERVE_|static_assert|_Static_assert|\( void) ")
ORDERING = re.compile(r"lock|bide_atomic_(?:store|exchange|fetch|compare|fence)|fence|wake")
WEAKER = {"acquire": ["relaxed"], "release": ["relaxed"], "acq_rel": ["acquire", "release"], "seq_cst": ["acq_rel"]}
JUMPS = ("return", "break", "continue", "goto")
NESTED = ("if", "while", "for", "switch", "do")


class Token:
    def __init__(self, text, begin):
        self.text, self.begin, self.end = text, begin, begin + len(text)


class Statement:
    """kind: block, nested (with `word`), label, jump, declaration, or simple; first and last are indices of tokens."""

    def __init__(self, kind, first):
        self.kind, self.first, self.last = kind, first, first
        self.word, self.condition, self.inner = None, None, []


class Mutant:
    def __init__(self, rule, function, words, text, place):
        self.rule, self.function, self.words, self.text, self.place = rule, function, words, text, place

    @property
    def title(self):
        return f"{self.function}: {self.rule}: {self.words}"


def tokens_of(text):
    def blank(match):
        kept = match[0][0] in "\"'"
        return match[0] if kept else re.sub(r"[^\n]", " ", match[0])
    return [Token(m[0], m.start()) for m in TOKEN.finditer(BLANK.sub(blank, text))]


class Source:
    def __init__(self, text):
        self.text, self.tokens = text, tokens_of(text)
        self.function, self.made = None, []

    # ---- Tokens ----

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def closing(self, i):
        """The token that closes the bracket at i."""
        pairs, depth = {"(": ")", "{": "}", "[": "]"}, 0
        for j in range(i, len(self.tokens)):
            depth += self.word(j) in pairs
            depth -= self.word(j) in pairs.values()
            if depth == 0:
                return j
        raise SyntaxError(f"a bracket is not closed: {self.said(i, min(i + 9, len(self.tokens) - 1))}")

    def joined(self, first, last):
        return " ".join(t.text for t in self.tokens[first:last + 1])

    def quoted(self, first, last):
        return self.text[self.tokens[first].begin:self.tokens[last].end]

    def said(self, first, last):
        """The tokens as one line, for a title."""
        parts, end = [], None
        for t in self.tokens[first:last + 1]:
            parts.append((" " if end is not None and t.begin > end else "") + t.text)
            end = t.end
        line = "".join(parts)
        return line if len(line) <= 72 else line[:69] + "..."

    # ---- Statements ----

    def statement(self, i):
        word = self.word(i)
        s = Statement("simple", i)
        if word == "{":
            s.kind, s.last = "block", self.closing(i)
            s.inner = self.statements(i + 1, s.last)
        elif word in NESTED:
            s.kind, s.word, body = "nested", word, i + 1
            if word != "do":
                s.condition = (i + 2, self.closing(i + 1) - 1)
                body = s.condition[1] + 2
            s.inner = [self.statement(body)]
            s.last = s.inner[0].last
            if word == "if" and self.word(s.last + 1) == "else":
                s.inner.append(self.statement(s.last + 2))
                s.last = s.inner[1].last
            if word == "do":
                s.last = self.closing(s.last + 2) + 1
        elif word in ("case", "default") or self.word(i + 1) == ":":
            s.kind = "label"
            while self.word(s.last) != ":":
                s.last += 1
        else:
            while self.word(s.last) != ";":
                s.last = self.closing(s.last) if self.word(s.last) in ("(", "{", "[") else s.last
                s.last += 1
            if word in JUMPS:
                s.kind = "jump"
            elif DECLARATION.match(self.joined(i, s.last)):
                s.kind = "declaration"
        return s

    def statements(self, i, end):
        found = []
        while i < end:
            found.append(self.statement(i))
            i = found[-1].last + 1
        return found

    def functions(self):
        """Pairs of a name and a block."""
        i, found = 0, []
        while i < len(self.tokens):
            if self.word(i) == "(":
                opened, i = i, self.closing(i)
                if self.word(i + 1) == "{":
                    name = self.word(opened - 1)
                    if name in ("bide_coroutine", "bide_body"):
                        name = self.word(opened + 1)
                    found.append((name, self.statement(i + 1)))
                    i = found[-1][1].last
            elif self.word(i) == "{":
                i = self.closing(i)
            i += 1
        return found

    # ---- Mutants ----

    def make(self, rule, words, edits):
        """edits: triples of a begin, an end and a new text, which do not overlap."""
        text = self.text
        for begin, end, new in sorted(edits, reverse=True):
            lines = text.count("\n", begin, end) - new.count("\n")
            text = text[:begin] + new + "\n" * max(lines, 0) + text[end:]
        place = self.tokens[self.at].begin
        self.made.append(Mutant(rule, self.function, words, text, place))

    def span(self, s):
        return self.tokens[s.first].begin, self.tokens[s.last].end

    def line(self, s):
        begin, end = self.span(s)
        return BLANK.sub(lambda m: m[0] if m[0][0] in "\"'" else " ", self.text[begin:end]).replace("\n", " ")

    def reaches_memory(self, s):
        return re.search(r"->|\w \(|\* \w", self.joined(s.first, s.last)) is not None

    def calls(self, s):
        return re.search(r"\w \(", self.joined(s.first, s.last)) is not None

    def may_change(self, s):
        return s.kind == "simple" and self.word(s.first) != ";" and not UNTOUCHED.match(self.joined(s.first, s.last))

    def drop(self, s):
        bare = s.kind == "jump" and s.last == s.first + 1
        guards = s.word == "if" and len(s.inner) == 1 and any(
            t.text in JUMPS for t in self.tokens[s.inner[0].first:s.last])
        if self.may_change(s) or bare or guards:
            begin, end = self.span(s)
            last = s.condition[1] + 1 if guards else s.last
            self.make("drop", f"`{self.said(s.first, last)}`", [(begin, end, ";")])
        if s.word == "if":
            begin, end = (self.tokens[s.condition[0]].begin, self.tokens[s.condition[1]].end)
            self.make("guard", f"`{self.said(*s.condition)}`", [(begin, end, "1")])

    def weaken(self, s):
        for i in range(s.first, s.last + 1):
            if self.word(i - 1) in (",", "(") and self.word(i + 1) in (",", ")"):
                for order in WEAKER.get(self.word(i), []):
                    t = self.tokens[i]
                    begin = i
                    while begin > s.first and not self.word(begin).startswith(("bide_atomic_", "bide_fence")):
                        begin -= 1
                    self.make("weaken", f"`{self.said(begin, i)}` to {order}", [(t.begin, t.end, order)])

    def operands(self, first, last):
        closers = {")": "(", "]": "[", "}": "{"}
        stops = {"||": ["||"], "&&": ["||", "&&"], "|": ["||", "&&", "|", "^", "==", "!=", "<", ">", "<=", ">="],
                 "+": ["||", "&&", "|", "^", "&", "==", "!=", "<", ">", "<=", ">=", "<<", ">>", "+", "-"]}
        stops["-"] = stops["+"]
        always = [",", ";", "?", ":", "=", "|=", "&=", "+=", "-=", "return", "{", "("]
        for i in range(first + 1, last):
            word = self.word(i)
            if word not in stops or not re.match(r"[\w)\]]", self.word(i - 1)) or self.word(i - 1) in ("return", "case"):
                continue
            left, right = i - 1, i + 1
            while left >= first:  # the first token of the left operand
                if self.word(left) in closers:
                    depth = 0
                    while True:
                        depth += self.word(left) in closers
                        depth -= self.word(left) in closers.values()
                        if depth == 0:
                            break
                        left -= 1
                elif self.word(left) in stops[word] + always + ["["]:
                    break
                left -= 1
            while right <= last:  # behind the last token of the right one
                if self.word(right) in ("(", "[", "{"):
                    right = self.closing(right)
                elif self.word(right) in stops[word] + always + [")", "]", "}"]:
                    break
                right += 1
            a, b = left + 1, right - 1
            if b <= i or a >= i:
                continue
            both = self.said(a, b)
            if word not in "+-":
                self.make("operand", f"`{both}`: without the left",
                          [(self.tokens[a].begin, self.tokens[i].end, "")])
            self.make("operand", f"`{both}`: without the right",
                      [(self.tokens[i].begin, self.tokens[b].end, "")])

    def exchange(self, rule, words, s, t):
        (a, b), (c, d) = self.span(s), self.span(t)
        self.make(rule, words, [(a, d, self.text[c:d] + self.text[b:c] + self.text[a:b])])

    def move(self, rule, words, s, before):
        to = self.tokens[before.first].begin
        self.make(rule, words, [(to, to, self.line(s) + " "), (*self.span(s), ";")])

    def order(self, block):
        plain = ("simple", "declaration")
        for i, s in enumerate(block):
            self.at = s.first
            if s.kind not in plain or UNTOUCHED.match(self.joined(s.first, s.last)):
                continue
            said = f"`{self.said(s.first, s.last)}`"
            after = block[i + 1] if i + 1 < len(block) else None
            if after is not None and after.kind in plain and self.reaches_memory(s) and self.reaches_memory(after) \
                    and (self.calls(s) or self.calls(after)) \
                    and not UNTOUCHED.match(self.joined(after.first, after.last)):
                self.exchange("swap", f"{said} and `{self.said(after.first, after.last)}`", s, after)
            for step in (-2, 2):
                j = i + step
                between = block[min(i, j) + 1:max(i, j)] if 0 <= j < len(block) else []
                if not between or not self.reaches_memory(s) or block[j].kind not in plain + ("nested",) \
                        or between[0].kind not in plain + ("nested",) \
                        or not ORDERING.search(self.joined(block[j].first, block[j].last)):
                    continue
                other = f"`{self.said(block[j].first, block[j].condition[1] + 1 if block[j].condition else block[j].last)}`"
                if step < 0:
                    self.move("move", f"{said} before {other}", s, block[j])
                else:
                    to = self.span(block[j])[1]
                    self.make("move", f"{said} after {other}", [(*self.span(s), ";"), (to, to, " " + self.line(s))])
            before = block[i - 1] if i > 0 else None
            if before is not None and before.kind == "nested" and self.reads(s):
                self.move("hoist", f"{said} before `{self.said(before.first, before.first + 3)}`", s, before)

    def reads(self, s):
        joined = self.joined(s.first, s.last)
        return "=" in joined and re.search(r"->|bide_atomic_load", joined.split("=", 1)[1]) is not None

    def hoist_first(self, outer):
        for body in outer.inner:
            first = body.inner[0] if body.kind == "block" and body.inner else body
            if first.kind in ("simple", "declaration") and self.reads(first):
                self.at = first.first
                self.move("hoist", f"`{self.said(first.first, first.last)}` before "
                          f"`{self.said(outer.first, (outer.condition or (0, outer.first))[1] + 1)}`", first, outer)

    def walk(self, s):
        self.at = s.first
        self.drop(s)
        if s.kind == "nested":
            self.at = s.first
            head = Statement("head", s.first)
            if s.word == "do":
                head.first, head.last = s.inner[0].last + 1, s.last
            else:
                head.last = s.condition[1] + 1
            self.weaken(head)
            self.operands(head.first, head.last)
            self.hoist_first(s)
        elif s.kind not in ("block", "label") and not UNTOUCHED.match(self.joined(s.first, s.last)):
            self.weaken(s)
            self.operands(s.first, s.last)
        if s.kind == "block":
            self.order(s.inner)
        for inner in s.inner:
            self.walk(inner)

    def mutants(self):
        for self.function, body in self.functions():
            self.walk(body)
        counts, texts, different = {}, {self.text}, []
        for m in self.made:
            if m.text in texts:
                continue
            texts.add(m.text)
            title = m.title
            counts[title] = counts.get(title, 0) + 1
            if counts[title] > 1:
                m.words += f" ({counts[title]})"
            different.append(m)
        return different


def mutants(text):
    return Source(text).mutants()


def traps(text):
    """For each function: its name, and the text in which it traps when it is entered."""
    source = Source(text)
    found = []
    for name, body in source.functions():
        begin = source.tokens[body.first].end
        found.append((name, text[:begin] + " __builtin_trap();" + text[begin:]))
    return found


def trap_before(text, place):
    """The text with a trap before the statement at `place`. After an if without braces, the statement is then always run."""
    return text[:place] + "__builtin_trap(); " + text[place:]
