#!/usr/bin/env python3
"""The shape of the sources, in two seconds: run it in a checkout.

Code lines are lines of *.swift that are neither blank nor only comment. A type counts with its nested types and all its extensions, wherever they
stand. An edge leads from a top-level type to each other one of its module that its body or an extension of it names (so moving or renaming files changes
nothing); a circle is a set of types that reach each other. Mutable properties are the stored `var`s of a class or an actor, of types nested in it, and of
the struct in its `Mutex<...>`. A forwarder is a member of one expression that does nothing but use the member of the same name of something else. Foreign
words are uses of identifiers with a part (in camelCase) that is one of WORDS, for which the field has others (docs/dev/glossary.md).
All of them are counted in Sources/*.swift. --circles, --forwarders, --parameters (of functions with more than seven) and --words list them.
With --check FILE, each figure is compared with its bound in FILE (lines of `name: number`): one above it is an error, one below it, too, since a bound that
has fallen is lowered in the same commit. An import of a module that stands no earlier in Package.swift is an error: imports go down.
"""
import collections, glob, os, re, sys

MODIFIERS = r'(?:@\w+(?:\([^)]*\))?\s+)*((?:(?:public|package|internal|private|fileprivate|final|indirect|nonisolated|open)\s+)*)'
DECLARED = re.compile(r'^' + MODIFIERS + r'(class|struct|enum|actor|protocol)\s+(\w+)')
EXTENDED = re.compile(r'^(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|private|fileprivate)\s+)*extension\s+([\w.]+)')
STORED = re.compile(r'\s+(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|private|fileprivate|internal|weak|unowned|lazy|nonisolated(?:\(\w+\))?)(?:\(set\))?\s+)*var \w+(?:\s*:[^{]*|\s*=.*)?(?:\{\s*(?:didSet|willSet).*)?$')
NESTED = re.compile(r'\s+(?:@\w+\s+)*(?:(?:public|package|internal|private|fileprivate|final|indirect)\s+)*(?:class|struct|enum|actor)\s+\w+')
FORWARD = re.compile(r'(?:var|func) (\w+)[^{\n]*\{(?:\s*get\s*\{)?\s*(?:return )?(?:try )?(?:await )?[\w.!?\[\]]+[.?!]\1(?:\([^{}]*\))?\s*\}', re.S)
FUNCTION = re.compile(r'(?<![.\w])(?:func\s+(?:\w+|`\w+`|[^\s\w(]+)|init[?!]?|subscript)\s*(?:<[^(]*>)?\s*\(')
WORDS = re.compile(r'ask(s|ed|ing|er|ers)?|tell(s|ing)?|told|settle[sd]?|settling|wish(es|ed|ing)?|bring(s|ing)?|brought')
GO_ON = re.compile(r'[gG]o(es|ing)?On(?![a-z])|[wW]entOn(?![a-z])')


def parameters(text, start):
    """The number of parameters of the list that begins at `start`."""
    depth, count, begun = 0, 0, False
    for place in range(start, len(text)):
        character = text[place]
        if character in '([{<':
            depth += 1
        elif character in ')]}' or character == '>' and text[place - 1] != '-':
            depth -= 1
            if depth == 0:
                return count + begun
        elif character == ',' and depth == 1:
            count, begun = count + begun, False
            continue
        begun = begun or depth > 0 and not character.isspace() and place > start
    return count


def is_foreign(name):
    """Whether a part of an identifier is one of the words."""
    parts = re.findall(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+', name)
    return bool(GO_ON.search(name)) or any(WORDS.fullmatch(part.lower()) for part in parts)


def stripped(text):
    text = re.sub(r'"""(?:.|\n)*?"""', lambda m: '""' + '\n' * m[0].count('\n'), text)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r'/\*(?:.|\n)*?\*/', lambda m: '\n' * m[0].count('\n'), text)
    return re.sub(r'//.*', '', text)


def circles(uses):
    """Strongly connected components (Tarjan), largest first."""
    index, low, stack, on, found, n = {}, {}, [], set(), [], [0]

    def visit(v):
        index[v] = low[v] = n[0]
        n[0] += 1
        stack.append(v)
        on.add(v)
        for w in uses.get(v, ()):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            c = []
            while True:
                w = stack.pop()
                on.discard(w)
                c.append(w)
                if w == v:
                    break
            found.append(c)
    sys.setrecursionlimit(20000)
    for v in uses:
        if v not in index:
            visit(v)
    return sorted(found, key=len, reverse=True)


def measure(checkout):
    """All figures of a checkout as a dictionary."""
    root = os.path.join(checkout, 'Sources')
    files = sorted(glob.glob(root + '/**/*.swift', recursive=True))
    tests = glob.glob(os.path.join(checkout, 'Tests') + '/**/*.swift', recursive=True)
    module_of = lambda p: os.path.relpath(p, root).split(os.sep)[0]
    modules = {module_of(p) for p in files}
    lines = code = blank = 0
    imports, size, words, owners, own, guarded, forwarders = set(), collections.Counter(), collections.defaultdict(set), set(), collections.Counter(), collections.defaultdict(set), []
    declared, per = collections.defaultdict(set), collections.Counter()
    uses_of, long_lists = collections.Counter(), []
    for p in files:
        module, raw = module_of(p), open(p).read()
        text = stripped(raw)
        lines += raw.count('\n')
        blank += sum(not l.strip() for l in raw.split('\n')[:-1])
        code += sum(bool(l.strip()) for l in text.split('\n'))
        per[module] += sum(bool(l.strip()) for l in text.split('\n'))
        imports |= {(module, m) for m in re.findall(r'^(?:@\w+\s+|package |public |internal )*import (?:\w+ )?(\w+)', text, re.M) if m in modules}
        uses_of.update(re.findall(r'\b[A-Za-z_]\w+', text))
        long_lists += [(n, os.path.relpath(p, checkout), m[0]) for m in FUNCTION.finditer(text) if (n := parameters(text, m.end() - 1)) > 7]
        forwarders += [(os.path.relpath(p, checkout), m[1]) for m in FORWARD.finditer(text)]
        depth, current, nested, start = 0, None, False, 0
        for number, line in enumerate(text.split('\n')):
            if depth == 0:
                m, e = DECLARED.match(line), EXTENDED.match(line)
                if m or e:
                    current, start = (m[3] if m else e[1].split('.')[0]), number
                    if m:
                        declared[module].add(m[3])
                        if m[2] in ('class', 'actor'):
                            owners.add((module, m[3]))
            elif current and (depth == 1 or depth == 2 and nested) and STORED.match(line.rstrip()):
                own[(module, current)] += 1
            if current:
                words[(module, current)].update(re.findall(r'\b[A-Z]\w+\b', line))
                guarded[(module, current)].update(re.findall(r'\bMutex<(\w+)>', line))
            if depth == 1 and '{' in line:
                nested = bool(NESTED.match(line))
            depth += line.count('{') - line.count('}')
            if depth == 0 and current:
                size[(module, current)] += number - start + 1
                current = None
    mutable = {t: own[t] + sum(own[(t[0], s)] for s in guarded[t] if s != t[1]) for t in owners}
    rings = []
    for module in sorted(modules):
        names = declared[module]
        uses = {n: {w for w in words[(module, n)] if w in names and w != n} for n in names}
        rings += [(len(c), module, sorted(c)) for c in circles(uses) if len(c) > 1]
    rings.sort(reverse=True)
    order = re.findall(r'arget\(\s*name: "(\w+)"', open(os.path.join(checkout, 'Package.swift')).read())
    up = sorted((a, b) for a, b in imports if order.index(b) >= order.index(a))
    foreign = {name: count for name, count in uses_of.items() if is_foreign(name)}
    other = sum(open(p, errors='replace').read().count('\n') for e in ('c', 'h', 'js', 'css', 'html') for p in glob.glob(root + '/**/*.' + e, recursive=True))
    wide = lambda paths: sum(len(l) > 120 for p in paths for l in open(p).read().split('\n'))
    return dict(lines=lines, code=code, comments=(lines - blank - code) / max(1, lines - blank), other=other, tests=sum(open(p).read().count('\n') for p in tests),
                test_code=sum(bool(l.strip()) for p in tests for l in stripped(open(p).read()).split('\n')), modules=len(modules), imports=len(imports),
                types=sum(len(n) for n in declared.values()), big=sorted(((n, t[1]) for t, n in size.items() if n > 500), reverse=True), rings=rings,
                wide=sorted(((n, t[1]) for t, n in mutable.items() if n > 12), reverse=True), forwarders=forwarders, long=wide(files) + wide(tests), per=per,
                long_lists=sorted(long_lists, reverse=True), foreign=foreign, up=up)


def check(f, path):
    """Compares the figures with their bounds; returns what is wrong, a line each."""
    figures = {'code lines of Sources': f['code'], 'code lines of Tests': f['test_code'], 'modules': f['modules'], 'imports between modules': f['imports'],
               'top-level types': f['types'], 'forwarders': len(f['forwarders']), 'largest circle of types': f['rings'][0][0] if f['rings'] else 0,
               'types over 500 lines': len(f['big']), 'classes over 12 mutable properties': len(f['wide']),
               'most mutable properties of a class': f['wide'][0][0] if f['wide'] else 0, 'lines over 120 columns': f['long'], 'functions with more than seven parameters': len(f['long_lists']),
               'uses of words that are not of the field': sum(f['foreign'].values())}
    bounds = {name: int(bound) for name, bound in re.findall(r'^([^#:\n]+): *(\d+)$', open(path).read(), re.M)}
    wrong = [f'{name}: no bound' for name in figures.keys() - bounds.keys()] + [f'{name}: no such figure' for name in bounds.keys() - figures.keys()]
    wrong += [f'{a} imports {b}: imports go down the list of targets in Package.swift' for a, b in f['up']]
    for name, figure in figures.items():
        bound = bounds.get(name, figure)
        if figure > bound: wrong.append(f'{name}: {figure}, at most {bound}: take as many out, or raise it and say why in the commit')
        # Lines of code move with each change: their bound has some air below.
        if figure < bound and not ('code lines' in name and figure > bound - 500): wrong.append(f'{name}: {figure}, below its bound of {bound}: lower the bound')
    return wrong


def main():
    f = measure(os.getcwd())
    if '--check' in sys.argv:
        path = sys.argv[sys.argv.index('--check') + 1]
        wrong = check(f, path)
        sys.exit('\n'.join(f'shape: {line}' for line in wrong) + f'\nshape: the bounds are in {path}' if wrong else 0)
    several = lambda pairs: ', '.join('%s %d' % (name, n) for n, name in pairs[:12])
    print(f"code lines of Sources      {f['code']:>7,}   of {f['lines']:,} lines; comments {100 * f['comments']:.0f} % of what is not blank; C, scripts and styles {f['other']:,} lines")
    print(f"code lines of Tests        {f['test_code']:>7,}   of {f['tests']:,} lines")
    print(f"modules                    {f['modules']:>7}\nimports between modules    {f['imports']:>7}\ntop-level types            {f['types']:>7,}\nforwarders                 {len(f['forwarders']):>7}")
    print(f"largest circle of types    {f['rings'][0][0] if f['rings'] else 0:>7}   " + ', '.join(f'{m} {n}' for n, m, _ in f['rings'][:6]))
    print(f"types over 500 lines       {len(f['big']):>7}   {several(f['big'])}\nclasses > 12 mutable vars  {len(f['wide']):>7}   {several(f['wide'])}\nlines over 120 columns     {f['long']:>7}")
    print(f"over seven parameters      {len(f['long_lists']):>7}   most {f['long_lists'][0][0] if f['long_lists'] else 0}\nforeign words              {sum(f['foreign'].values()):>7,}   in {len(f['foreign'])} names")
    print('\n'.join(f'  {m:<24}{n:>8,}' for m, n in f['per'].most_common()))
    if '--circles' in sys.argv:
        for n, module, names in f['rings']:
            if n > 2: print(f'{module}: {n}: ' + ' '.join(names))
    if '--forwarders' in sys.argv:
        for path, name in f['forwarders']: print(path, name)
    if '--parameters' in sys.argv:
        for n, path, name in f['long_lists']: print(n, path, name)
    if '--words' in sys.argv:
        for name, count in sorted(f['foreign'].items(), key=lambda pair: -pair[1]): print(count, name)


if __name__ == '__main__': main()
