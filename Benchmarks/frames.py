#!/usr/bin/env python3
"""How long a player takes until it has its first frame, in ms, from the start of its process: until mpv reports that it plays, until ffmpeg ends.

    REELCACHE=$(scripts/build-release) Benchmarks/frames.py [--runs 5]

MP4 with its index at the beginning and at the end, HLS and DASH; mpv, and ffmpeg, which reads as ffplay does. `direct` and `cold` fetch from
an origin, each time under a new URL; `warm` is cached; `offline` is that behind a proxy that contacts no origin; `local` is the file itself.
Each state in turn within a round; medians. Needs mpv, ffmpeg and gcc.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--runs", type=int, default=5)
options = parser.parse_args()
binary = os.path.abspath(os.environ.get("REELCACHE") or sys.exit("name the binary of a release build in REELCACHE"))
ORIGIN, PROXY, OFFLINE = 28040, 28041, 28042
FORMS = {"MP4, index first": "front.mp4", "MP4, index last": "end.mp4", "HLS": "hls/film.m3u8", "DASH": "dash/film.mpd"}
PLAYERS = {"mpv": ["mpv", "--no-config", "--really-quiet", "--vo=null", "--ao=null", "--script={script}", "{url}"],
           "ffmpeg": ["ffmpeg", "-v", "error", "-i", "{url}", "-map", "0:v:0", "-frames:v", "1", "-f", "null", "-"]}

# mpv's end takes up to 0.2 s, so that it says itself when it has a frame.
SCRIPT = """mp.register_event("playback-restart", function() io.stdout:write("plays\\n") io.stdout:flush() mp.command("quit") end)"""


def make_media(folder):
    def ffmpeg(*arguments):
        subprocess.run(["ffmpeg", "-v", "error", *arguments], check=True, cwd=folder)
    for name in ("hls", "dash"):
        (folder / name).mkdir()
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25:duration=60", "-f", "lavfi", "-i", "sine=duration=60", "-c:v", "libx264",
           "-preset", "ultrafast", "-b:v", "4M", "-g", "50", "-c:a", "aac", "end.mp4")
    ffmpeg("-i", "end.mp4", "-c", "copy", "-movflags", "+faststart", "front.mp4")
    ffmpeg("-i", "end.mp4", "-c", "copy", "-hls_time", "2", "-hls_playlist_type", "vod", "hls/film.m3u8")
    ffmpeg("-i", "end.mp4", "-c", "copy", "-seg_duration", "2", "-f", "dash", "dash/film.mpd")


def start(command, port):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1).close()
            return process
        except urllib.error.HTTPError:
            return process
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{command[0]} does not start")


def serve(port, cache, *more):
    return start([binary, "serve", "--listen", f"127.0.0.1:{port}", "--cache-dir", cache, "--allow", "127.0.0.1", "--log-level", "error", *more],
                 port)


def milliseconds(player, url):
    begin = time.perf_counter()
    command = [word.format(url=url, script=script) for word in PLAYERS[player]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        said = process.stdout.readline()
        taken = (time.perf_counter() - begin) * 1000
    if process.returncode or (player == "mpv") != bool(said):
        sys.exit(f"{player} has no frame of {url}")
    return taken


with tempfile.TemporaryDirectory() as work:
    folder = Path(work)
    tool = folder / "slorigin"
    subprocess.run(["gcc", "-O2", "-o", tool, Path(__file__).parent / "tools/slorigin.c"], check=True)
    script = folder / "plays.lua"
    script.write_text(SCRIPT)
    media = folder / "media"
    media.mkdir()
    make_media(media)
    processes = [start([tool, "--port", str(ORIGIN), "--root", media], ORIGIN)]
    try:
        cache, fresh = str(folder / "cache"), 0
        origin = f"http://127.0.0.1:{ORIGIN}"
        through = {port: f"http://127.0.0.1:{port}/http/127.0.0.1:{ORIGIN}" for port in (PROXY, OFFLINE)}
        online = serve(PROXY, cache)
        processes.append(online)
        rows = {}
        for latency in (0, 100):
            urllib.request.urlopen(f"{origin}/__set?latency_ms={latency}").close()
            for form, path in FORMS.items():
                for player in PLAYERS:
                    times = rows.setdefault((form, player, latency), {})
                    milliseconds(player, f"{through[PROXY]}/~warm-{player}/{path}")
                    for _ in range(options.runs):
                        fresh += 1
                        for state, url in {"local": str(media / path), "direct": f"{origin}/~d{fresh}/{path}",
                                           "cold": f"{through[PROXY]}/~c{fresh}/{path}",
                                           "warm": f"{through[PROXY]}/~warm-{player}/{path}"}.items():
                            times.setdefault(state, []).append(milliseconds(player, url))
        online.terminate()
        online.wait()
        processes.remove(online)
        processes.append(serve(OFFLINE, cache, "--offline"))
        for (form, player, _), times in rows.items():
            times["offline"] = [milliseconds(player, f"{through[OFFLINE]}/~warm-{player}/{FORMS[form]}") for _ in range(options.runs)]
        print(f"{'':18}{'':8}{'latency':>8}{'local':>8}{'direct':>8}{'cold':>8}{'warm':>8}{'offline':>8}{'cold - direct':>15}{'warm - local':>14}")
        for (form, player, latency), times in rows.items():
            median = {state: statistics.median(list) for state, list in times.items()}
            figures = "".join(f"{median[state]:8.0f}" for state in ("local", "direct", "cold", "warm", "offline"))
            print(f"{form:18}{player:8}{latency:8}{figures}{median['cold'] - median['direct']:15.0f}{median['warm'] - median['local']:14.0f}")
    finally:
        for process in processes:
            process.terminate()
            process.wait()
