#include "setup/python_facts.h"

#include "base/text.h"
#include "codec/json_fields.h"
#include "setup/tool.h"

#include <unistd.h>

namespace lockstep::setup {
namespace {

constexpr std::size_t kMostAnswer = 1UL << 20;
constexpr std::size_t kMostOps = 1000;

// Importing torch is slow and may fail, so the question reads the packages' version files.
// The marker separates our line from anything that a sitecustomize prints.
constexpr const char* kQuestion = R"(import glob, importlib.util, json, os, platform, sys, sysconfig
try:
    from importlib import metadata
except ImportError:
    metadata = None
def version(name):
    try:
        return metadata.version(name)
    except Exception:
        return ''
def folder(name):
    try:
        found = importlib.util.find_spec(name)
        return os.path.dirname(found.origin) if found and found.origin else ''
    except Exception:
        return ''
def values(path):
    have = {}
    try:
        with open(path) as file:
            exec(compile(file.read(), path, 'exec'), have)
    except Exception:
        pass
    return have
torch = folder('torch')
built = values(torch + '/version.py') if torch else {}
deep = folder('deepspeed')
made = values(deep + '/git_version_info_installed.py') if deep else {}
pair = made.get('torch_info') or {}
include = sysconfig.get_path('include') or ''
nccl = ''
for number in ('13', '12', '11'):
    nccl = nccl or version('nvidia-nccl-cu' + number)
for pattern in ([torch + '/lib/libnccl.so*'] if torch else []) + ['/usr/lib/*/libnccl.so.2*',
        '/usr/lib64/libnccl.so.2*', '/usr/local/cuda/lib64/libnccl.so.2*']:
    nccl = nccl or ''.join(sorted(glob.glob(pattern))[:1])
libc = platform.libc_ver()
print('lockstep:' + json.dumps({
    'version': '.'.join(map(str, sys.version_info[:3])),
    'tag': (sysconfig.get_config_var('SOABI') or '') + ' ' + sysconfig.get_platform(),
    'libc': ' '.join(libc).strip(),
    'include': include,
    'headers': os.path.exists(os.path.join(include, 'Python.h')),
    'pip': version('pip') if folder('pip') else '',
    'setuptools': version('setuptools') if folder('setuptools') else '',
    'wheel': version('wheel') if folder('wheel') else '',
    'torch': str(built.get('__version__') or (version('torch') if torch else '')),
    'torch_cuda': str(built.get('cuda') or ''),
    'torch_hip': str(built.get('hip') or ''),
    'nccl': nccl,
    'deepspeed': str(made.get('version') or (version('deepspeed') if deep else '')),
    'deepspeed_torch': str(pair.get('version') or ''),
    'deepspeed_cuda': str(pair.get('cuda_version') or ''),
    'deepspeed_ops': sorted(str(k) for k, v in (made.get('installed_ops') or {}).items() if v)})))";
constexpr std::string_view kMarker = "lockstep:";

}  // namespace

static void fields(codec::JsonFields& io, PythonFacts& facts) {
  io("version", facts.version);
  io("tag", facts.tag);
  io("libc", facts.libc);
  io("include", facts.include);
  io("headers", facts.headers);
  io("pip", facts.pip);
  io("setuptools", facts.setuptools);
  io("wheel", facts.wheel);
  io("torch", facts.torch);
  io("torch_cuda", facts.torch_cuda);
  io("torch_hip", facts.torch_hip);
  io("nccl", facts.nccl);
  io("deepspeed", facts.deepspeed);
  io("deepspeed_torch", facts.deepspeed_torch);
  io("deepspeed_cuda", facts.deepspeed_cuda);
  io("deepspeed_ops", facts.deepspeed_ops);
}

Result<PythonFacts> read_python_facts(const std::string& python, std::string_view text) {
  const nlohmann::json reply = codec::parse_json(text, {.bytes = kMostAnswer});
  PythonFacts facts{.python = python};
  if (!codec::read_fields(reply, facts))
    return fail(Errc::corrupt, python + " gave no readable answer about its packages");
  if (facts.deepspeed_ops.size() > kMostOps)
    return fail(Errc::corrupt, python + " says that DeepSpeed has too many ops");
  return facts;
}

Result<PythonFacts> ask_python(const std::string& python, const std::string& folder) {
  std::string reply;
  // PYTHONDONTWRITEBYTECODE: leave no .pyc files in the user's environment.
  const ToolCall call{{python, "-c", kQuestion}, {"PYTHONDONTWRITEBYTECODE=1"}, folder};
  const auto ended = run_tool(call, [&](std::string_view line) {
    if (line.starts_with(kMarker)) reply = line.substr(kMarker.size());
  });
  if (!ended) return Failure(ended.error());
  if (ended->code != 0)
    return fail(Errc::unavailable,
                python + " does not run: " + printable(telling_line(ended->tail)));
  return read_python_facts(python, reply);
}

}  // namespace lockstep::setup
