#!/usr/bin/env python3
"""Instructions in user space per request, beside nginx: a figure that a busy machine does not move.

    apt install valgrind nginx
    REELCACHE=PATH-OF-THE-BINARY ./instructions.py                  # a table; about three minutes
    REELCACHE=... REELCACHE_BEFORE=OTHER ./instructions.py --only hit,miss
    REELCACHE=... ./instructions.py --only miss --profile OUT       # OUT.N for callgrind_annotate, names from the symbols
    REELCACHE=... ./instructions.py --check instructions.bounds     # what CI does: ours alone, each row against its bound

Each server runs under callgrind on one loop (--threads 1; nginx without a master). A row is warmed up, then counted over N requests
of one client, and divided by N; all threads of the process count, those of the store too. Work in the kernel (sending, receiving, files)
is not counted: that is what bench.py is for. Nor is copying memory (memcpy, memset), which callgrind counts by the byte. The same binary gives the same figures within about 2 %.
With --check, a row above its bound is counted twice more, and the median of the three decides. A bound is the figure that was reached, and 5 %.

Rows: hit     cached files of 64 KiB, eight of them in turn, keep-alive
      spread  1,500 cached files of 4 KiB in turn, with what their use costs later: what is remembered for a few addresses does not help
      text    the same of a subtitle (TTML, 64 KiB), of type application/octet-stream
      playlist the same of an HLS playlist of 40 segments, type VOD, which needs no rewriting
      live    the same of a live one, whose addresses are rewritten, while it is fresh: all viewers of a stream ask for it every few seconds
              (nginx serves it unchanged)
      browser the same as hit, as a browser asks: fifteen lines of head and a range
      deployed  that, through a mount, with an access log (nginx with one, too)
      touch   what a hit costs later: 200 files read once each, and all that happens within twelve seconds after (times of use, checkpoints,
              closing), for each file, less a hit (ours only)
      range   64 KiB somewhere in a cached file of 16 MiB, keep-alive
      seek    a new connection, an open range of that file, 256 KiB read, closed
      segment a cached segment of an HLS playlist that was read before (ours only: nginx knows no playlists, its hit stands beside it)
      miss    a file of 64 KiB that was never asked for, origin on this machine
      long    1 MiB of an uncached file of 64 MiB
      closed  a cached file of 64 KiB that is not open: 300 in turn, of which some 100 may be open; its opening, hit and closing, and all
              that happens within twelve seconds after (ours only)
      stats   GET /stats
"""
import argparse, glob, os, re, resource, shutil, signal, socket, subprocess, sys, tempfile, time

ORIGIN, PORT, SPREAD = 28200, 28201, 1500
ROWS = ('hit', 'spread', 'browser', 'deployed', 'text', 'playlist', 'live', 'touch', 'range', 'seek', 'segment', 'closed', 'miss', 'long', 'stats')

BROWSER = ('User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0 Safari/537.36\r\nAccept: */*\r\n'
    'Accept-Encoding: identity;q=1, *;q=0\r\nAccept-Language: en-US,en;q=0.9,de;q=0.8\r\nReferer: http://127.0.0.1/page\r\nSec-Fetch-Site: same-origin\r\n'
    'Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: video\r\nsec-ch-ua: "Chromium";v="156"\r\nsec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: "Linux"\r\n'
    'Priority: u=1\r\nCookie: a=b; c=d\r\n')

def http(path, rng=None, conn=None, want=None, head=''):
    s = conn or socket.create_connection(('127.0.0.1', PORT))
    f = s.makefile('rb', buffering=0) if want else s.makefile('rb')
    s.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n" + (f"Range: bytes={rng}\r\n" if rng else '') + head + "\r\n").encode())
    if want:                                    # a seek: read so much, then leave
        got = 0
        while got < want:
            b = s.recv(65536)
            if not b: raise SystemExit('cut short')
            got += len(b)
        s.close()
        return
    status = int(f.readline().split()[1]); length = 0; chunked = False
    while (line := f.readline()) not in (b'\r\n', b''):
        k, _, v = line.partition(b':')
        if k.lower() == b'content-length': length = int(v)
        if k.lower() == b'transfer-encoding': chunked = True
    if chunked: raise SystemExit(f'{path}: chunked answers are not expected here')
    if status not in (200, 206): raise SystemExit(f'{path}: {status}')
    left = length
    while left:
        b = f.read(min(left, 1 << 20))
        if not b: raise SystemExit(f'{path}: cut short')
        left -= len(b)
    return s

class Server:
    def __init__(self, name, argv, prefix, work, files=None):
        self.name, self.prefix, self.out = name, prefix, os.path.join(tempfile.mkdtemp(dir=work), 'callgrind')
        self.log = open(os.path.join(work, name + '.log'), 'w')
        self.p = subprocess.Popen(['valgrind', '--tool=callgrind', '--instr-atstart=no', '--separate-threads=yes',
                                   f'--callgrind-out-file={self.out}'] + argv, stdout=self.log, stderr=self.log,
                                  preexec_fn=files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))))
        self.dumps = 0
        for _ in range(600):
            if self.p.poll() is not None: raise SystemExit(f'{name} ended: see {self.log.name}')
            try: socket.create_connection(('127.0.0.1', PORT), 1).close(); return
            except OSError: time.sleep(.2)
        raise SystemExit(f'{name} does not listen')
    def control(self, *a):
        subprocess.run(['callgrind_control', *a, str(self.p.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    def count(self, work, settle):
        self.control('-i', 'on'); self.control('-z')
        n = work()
        time.sleep(settle)
        self.control('-d'); self.control('-i', 'off')
        self.dumps += 1
        total = 0
        for path in glob.glob(f'{self.out}.{self.dumps}-*') + glob.glob(f'{self.out}.{self.dumps}'):
            for line in subprocess.run(['callgrind_annotate', '--threshold=100', '--auto=no', path], capture_output=True, text=True, errors='replace').stdout.splitlines():
                m = re.match(r'\s*([\d,]+)\s*\([ \d.]+%\)\s+(.*)', line)
                if not m: continue
                figure = int(m[1].replace(',', ''))
                if 'PROGRAM TOTALS' in m[2]: total += figure
                elif re.search(r'/(memmove|memset)-vec|XXH3_', m[2]): total -= figure
        return total / n
    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        try: self.p.wait(60)
        except subprocess.TimeoutExpired: self.p.kill()

def rows(server, only, ours):
    pre, out = server.prefix, {}
    def hit(n, path):
        s = http(path)
        for _ in range(n - 1): http(path, conn=s)
        return n
    def ranges(n):
        s = http(pre + '/mid.bin', rng='0-65535')
        for i in range(1, n): http(pre + '/mid.bin', rng=f'{(i * 7919 % 256) * 65536}-{(i * 7919 % 256) * 65536 + 65535}', conn=s)
        return n
    def seeks(n):
        for i in range(n): http(pre + '/mid.bin', rng=f'{(i * 7919 % 200) * 65536}-', want=262144)
        return n
    def misses(a, n, folder='c', **more):
        s = None
        for i in range(a, a + n): s = http(f'{pre}/{folder}/{i}.bin', conn=s, **more)
        return n
    spread = lambda: misses(0, SPREAD, 'd')
    browser = lambda times: sum(misses(0, 8, head=BROWSER, rng='0-65535') for _ in range(times))
    def long():
        http(pre + '/long.bin'); return 64
    plan = {
        'hit': lambda: (misses(0, 200), time.sleep(7 if ours else 0), misses(0, 8), time.sleep(3 if ours else 0), server.count(lambda: sum(misses(0, 8) for _ in range(250)), 0))[-1],
        'spread': lambda: (spread(), time.sleep(14 if ours else 0), spread(), time.sleep(14 if ours else 0), server.count(spread, 12 if ours else 0))[-1],
        'text': lambda: (hit(20, pre + '/t.bin'), time.sleep(4 if ours else 0), hit(20, pre + '/t.bin'), server.count(lambda: hit(1000, pre + '/t.bin'), 0))[-1],
        'playlist': lambda: (hit(20, pre + '/v/index.m3u8'), time.sleep(4 if ours else 0), hit(5, pre + '/v/index.m3u8'), server.count(lambda: hit(500, pre + '/v/index.m3u8'), 0))[-1],
        'browser': lambda: (misses(0, 8), time.sleep(7 if ours else 0), browser(1), time.sleep(3 if ours else 0), server.count(lambda: browser(120), 0))[-1],
        'deployed': lambda: (misses(0, 8), time.sleep(7 if ours else 0), browser(1), time.sleep(3 if ours else 0), server.count(lambda: browser(120), 0))[-1],
        'touch': lambda: (misses(0, 200), time.sleep(14), server.count(lambda: misses(0, 200), 12) - out.get('hit', 0))[-1] if ours else None,
        'range': lambda: (http(pre + '/mid.bin'), time.sleep(4 if ours else 0), ranges(300), server.count(lambda: ranges(1000), 0))[-1],
        'seek': lambda: (http(pre + '/mid.bin'), time.sleep(4 if ours else 0), seeks(50), server.count(lambda: seeks(300), 0))[-1],
        'segment': lambda: (http(pre + '/v/index.m3u8'), [http(f'{pre}/v/{i}.ts') for i in range(40)], http(pre + '/v/index.m3u8'), time.sleep(7),
                            server.count(lambda: sum(bool(http(f'{pre}/v/{i % 40}.ts')) for i in range(200)), 0))[-1] if ours else None,
        'closed': lambda: (misses(0, 300), time.sleep(14), misses(0, 300), server.count(lambda: misses(0, 300), 12))[-1] if ours else None,
        # What the rows before leave to do (files that were used, and close) is neither a miss's nor a long one's.
        'miss': lambda: (misses(200, 50), time.sleep(14 if ours else 0), server.count(lambda: misses(250, 250), 3 if ours else 0))[-1],
        'long': lambda: (time.sleep(14 if ours else 0), server.count(long, 3 if ours else 0))[-1],
        # Last, as it stays known which addresses it lists: all requests to their host are compared with them.
        'live': lambda: (hit(20, pre + '/v/live.m3u8'), server.count(lambda: hit(500, pre + '/v/live.m3u8'), 0))[-1],
        'stats': lambda: (hit(20, '/stats'), server.count(lambda: hit(100, '/stats'), 0))[-1] if ours else None,
    }
    for name in plan:
        if not only or name in only: out[name] = plan[name]()
    return out

def check(path, first, measure):
    """Compares each row with its bound, prints them, and returns the exit status."""
    bounds = {row: int(bound) for row, bound in re.findall(r'^(\w+): *(\d+)$', open(path).read(), re.M)}
    counted = {row: [figure] for row, figure in first.items() if figure}
    if missing := counted.keys() - bounds.keys(): raise SystemExit(f'{path}: no bound for {", ".join(sorted(missing))}')
    for _ in range(2):
        if above := {row for row, figures in counted.items() if figures[0] > bounds[row]}:
            for row, figure in measure(above)['reelcache'].items(): counted[row].append(figure)
    wrong = 0
    for row, figures in counted.items():
        figure = sorted(figures)[len(figures) // 2]
        wrong += (is_above := figure > bounds[row])
        # A bound that has fallen is lowered in the same commit.
        note = 'ABOVE ITS BOUND' if is_above else 'lower its bound' if figure * 1.1 < bounds[row] else ''
        print(f'{row:<10}{figure:>12,.0f}   at most {bounds[row]:>12,}   {note}'.rstrip())
    return f'instructions: {wrong} of {len(counted)} rows cost more than they may: {path}' if wrong else 0

def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--only', default='', help='rows, by commas'); a.add_argument('--profile', help='keep the profiles of ours as OUT.N-THREAD')
    a.add_argument('--json', action='store_true'); a.add_argument('--check', metavar='FILE', help='bounds, lines of `row: instructions`')
    o = a.parse_args(); only = set(filter(None, o.only.split(',')))
    for tool in ('valgrind', 'callgrind_control', 'nginx'):
        if not shutil.which(tool): raise SystemExit(f'{tool} is missing: apt install valgrind nginx')
    work = tempfile.mkdtemp(prefix='reelcache-instructions-'); os.chmod(work, 0o755)
    www = os.path.join(work, 'www'); [os.makedirs(f'{www}/{name}') for name in 'cdv']
    def fill(path, size):
        with open(path, 'wb') as f:
            for _ in range(0, size, 65536): f.write(b'G' + os.urandom(65535))
    fill(www + '/a.bin', 65536); fill(www + '/mid.bin', 16 << 20); fill(www + '/long.bin', 64 << 20)
    with open(www + '/t.bin', 'w') as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<tt xmlns="http://www.w3.org/ns/ttml" xml:lang="en">\n<body><div>\n')
        while f.tell() < 65400: f.write('<p begin="%dms" end="%dms">What was said there.</p>\n' % (f.tell(), f.tell() + 50))
        f.write('</div></body></tt>'.ljust(65536 - f.tell()))
    for i in range(500): shutil.copy(www + '/a.bin', f'{www}/c/{i}.bin')
    for i in range(SPREAD): fill(f'{www}/d/{i}.bin', 4096)
    for i in range(40): shutil.copy(www + '/a.bin', f'{www}/v/{i}.ts')
    open(www + '/v/index.m3u8', 'w').write('#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-PLAYLIST-TYPE:VOD\n' +
        ''.join(f'#EXTINF:2,\n{i}.ts\n' for i in range(40)) + '#EXT-X-ENDLIST\n')
    open(www + '/v/live.m3u8', 'w').write('#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:600\n' +
        ''.join(f'#EXTINF:600,\nhttp://127.0.0.1:{ORIGIN}/v/{i}.ts\n' for i in range(40)))
    def conf(name, port, body, log):
        """An nginx configuration of one process; returns the argument vector."""
        temporary = ''.join(f'{k}_temp_path {work}/{name}-{k};\n' for k in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        with open(f'{work}/{name}.conf', 'w') as f:
            f.write(f'daemon off; master_process off; worker_processes 1; user root; pid {work}/{name}.pid; error_log {work}/{name}.err; events {{ worker_connections 512; }}\n'
                    f'http {{ access_log {log}; sendfile on; keepalive_requests 10000000; keepalive_timeout 600s;\n'
                    'types { application/vnd.apple.mpegurl m3u8; video/mp2t ts; } default_type application/octet-stream;\n' + temporary + body + ' }\n')
        return ['nginx', '-c', f'{work}/{name}.conf']

    def static(log='off'):
        return conf('static', PORT, f'open_file_cache max=2000; server {{ listen 127.0.0.1:{PORT}; root {www}; }}', log)

    def slices(log='off'):
        return conf('slice', PORT, f'proxy_cache_path {work}/cache levels=1:2 keys_zone=c:16m max_size=4g use_temp_path=off; upstream o {{ server 127.0.0.1:{ORIGIN}; keepalive 16; }}\n'
                    f'server {{ listen 127.0.0.1:{PORT}; location / {{ slice 1m; proxy_pass http://o; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Range $slice_range;\n'
                    'proxy_cache c; proxy_cache_key $uri$slice_range; proxy_cache_valid 200 206 1d; proxy_cache_lock on; } }', log)

    def reelcache(variable, *more):
        # valgrind gives up on some debugging information; names of functions are enough.
        binary = f'{work}/{variable.lower()}'
        subprocess.run(['strip', '-g', '-o', binary, os.environ[variable]], check=True)
        return [binary, 'serve', '--listen', f'127.0.0.1:{PORT}', '--cache-dir', f'{work}/{variable}-cache', '--allow', '127.0.0.1', '--threads', '1', '--log-level', 'error', *more]

    origin = subprocess.Popen(conf('origin', ORIGIN, f'server {{ listen 127.0.0.1:{ORIGIN}; root {www}; }}', 'off'))
    deployed = ('--mount', f'/=http://127.0.0.1:{ORIGIN}', '--access-log', f'{work}/access.log')
    path_form = f'/http/127.0.0.1:{ORIGIN}'
    try:
        # name, arguments, arguments as deployed, prefix of paths, rows that it does not have
        servers = [] if o.check else [('nginx-static', static, lambda: static(f'{work}/static.log'), '', {'miss', 'long'}), ('nginx-slice', slices, lambda: slices(f'{work}/slice.log'), '', set())]
        for variable, name in (('REELCACHE_BEFORE', 'before'), ('REELCACHE', 'reelcache')):
            if os.environ.get(variable): servers.append((name, lambda v=variable: reelcache(v), lambda v=variable: reelcache(v, *deployed), path_form, set()))
        def measure(only):
            table = {}
            for name, plain, as_deployed, prefix, without in servers:
                ours = name in ('reelcache', 'before')
                # What files leave to do, of which spread has many, is no other row's.
                for part, argv, prefix, files in ((set(ROWS) - {'deployed', 'closed', 'spread'} - without, plain, prefix, None), ({'deployed'}, as_deployed, '', None),
                                                  ({'spread'}, plain, prefix, None),
                                                  ({'closed'} if ours else set(), plain, prefix, 420)):
                    names = part & (only | ({'hit'} if 'touch' in only else set())) if only else part       # a touch is less a hit
                    if not names: continue
                    shutil.rmtree(f'{work}/REELCACHE-cache', ignore_errors=True)
                    server = Server(name, argv(), prefix, work, files)
                    try: table.setdefault(name, {}).update(rows(server, names, ours))
                    finally: server.stop()
                    if name == 'reelcache' and o.profile:
                        for path in glob.glob(server.out + '.*'): shutil.copy(path, o.profile + path[len(server.out):])
            return table
        table = measure(only)
        if o.check: raise SystemExit(check(o.check, table['reelcache'], measure))
        if o.json:
            import json; print(json.dumps(table)); return
        order = [r for r in ROWS if any(r in t for t in table.values())]
        print('| row | ' + ' | '.join(table) + ' |\n|---|' + '---|' * len(table))
        for r in order:
            print(f'| {r} | ' + ' | '.join(f"{t[r]:,.0f}" if t.get(r) else '–' for t in table.values()) + ' |')
    finally:
        origin.terminate(); origin.wait(10)
        shutil.rmtree(work, ignore_errors=True)

if __name__ == '__main__': main()
