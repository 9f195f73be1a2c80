#include "setup/wheel_file.h"

#include "base/text.h"
#include "codec/json_fields.h"
#include "setup/spec.h"
#include "setup/tool.h"

#include <utility>

namespace lockstep::setup {
namespace {

constexpr std::size_t kMostNames = 10'000;
constexpr std::string_view kMarker = "lockstep:";

// Bounds the unpacked size, because a wheel may be a zip bomb. Top-level names other than
// identifiers are data folders, not modules.
constexpr const char* kQuestion = R"(import ast, json, os, sys, zipfile
from email.parser import Parser
with zipfile.ZipFile(sys.argv[1]) as archive:
    size = sum(info.file_size for info in archive.infolist())
    if size > (1 << 30) + 100 * os.path.getsize(sys.argv[1]):
        sys.exit('error: unpacked it would have %d MiB' % (size >> 20))
    bad = archive.testzip()
    if bad:
        sys.exit('error: its file ' + bad + ' is damaged')
    names = archive.namelist()
    def text(name):
        size = archive.getinfo(name).file_size
        if size > 1 << 24:
            sys.exit('error: its file %s has %d MiB' % (name, size >> 20))
        return archive.read(name).decode()
    info = [n for n in names if n.count('/') == 1 and n.endswith('.dist-info/WHEEL')]
    if not info:
        sys.exit('error: it has no dist-info/WHEEL')
    folder = info[0][:-len('WHEEL')]
    tags = Parser().parsestr(text(folder + 'WHEEL'))
    meta = Parser().parsestr(text(folder + 'METADATA'))
    tops = []
    if folder + 'top_level.txt' in names:
        tops = text(folder + 'top_level.txt').split()
    else:
        for n in names:
            parts = n.split('/')
            if len(parts) == 2 and parts[1] == '__init__.py':
                tops.append(parts[0])
            if len(parts) == 1 and (n.endswith('.py') or n.endswith('.so')):
                tops.append(n.split('.')[0])
    ops, knows = [], False
    for n in names:
        if n.endswith('/git_version_info_installed.py') and n.count('/') == 1:
            for node in ast.parse(text(n)).body:
                if isinstance(node, ast.Assign) and node.targets[0].id == 'installed_ops':
                    ops = [k for k, v in ast.literal_eval(node.value).items() if v]
                    knows = True
    print('lockstep:' + json.dumps({
        'name': meta['Name'], 'version': meta['Version'],
        'modules': sorted(set(t for t in tops if t.isidentifier())),
        'libraries': sorted(n for n in names if n.endswith('.so')),
        'pure': tags['Root-Is-Purelib'].strip() == 'true',
        'ops': sorted(ops), 'knows_ops': knows})))";

}  // namespace

static void fields(codec::JsonFields& io, WheelFile& wheel) {
  io("name", wheel.name);
  io("version", wheel.version);
  io("modules", wheel.modules);
  io("libraries", wheel.libraries);
  io("pure", wheel.pure);
  io("ops", wheel.ops);
  io("knows_ops", wheel.knows_ops);
}

Result<WheelFile> read_wheel_answer(const std::string& path, std::string_view text) {
  const nlohmann::json reply = codec::parse_json(text);
  WheelFile wheel{.file = base_name(path)};
  if (!codec::read_fields(reply, wheel)) return fail(Errc::corrupt, path + " is not a valid wheel");
  if (wheel.modules.size() + wheel.libraries.size() + wheel.ops.size() > kMostNames)
    return fail(Errc::corrupt, path + " has too many modules");
  return wheel;
}

Result<WheelFile> read_wheel(const std::string& python, const std::string& path) {
  std::string reply;
  // -I: modules in the working folder must not replace zipfile or json.
  const auto ended = run_tool({{python, "-I", "-c", kQuestion, path}}, [&](std::string_view line) {
    if (line.starts_with(kMarker)) reply = line.substr(kMarker.size());
  });
  if (!ended) return Failure(ended.error());
  if (ended->code != 0)
    return fail(Errc::corrupt,
                path + " is not a readable wheel: " + printable(telling_line(ended->tail)));
  return read_wheel_answer(path, reply);
}

}  // namespace lockstep::setup
