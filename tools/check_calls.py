#!/usr/bin/env python3
"""Refuses calls in src/ that can make the C library load a module of the machine. The binary is static and the module
was built for another C library, so the process would die in the module by SIGSEGV or SIGFPE.

Look up host names with io::Lookup (io/resolve.h). Print users and groups as numbers.

Also refuses exceptions, except in tests: release builds are compiled without them (cmake/Room.cmake). In tests it
refuses `EXPECT_EQ(result.error().code, ...)`, which can pass on a result that is a value.
"""
import pathlib
import re
import sys

# Calls that are allowed, and the only files that may make them.
ALLOWED = {"getaddrinfo": {"src/io/system_names.cc"}}

FORBIDDEN = re.compile(r"\b(" + "|".join((
    # The name service switch.
    r"getaddrinfo(?:_a)?", r"gethostby(?:name2?|addr)(?:_r)?", r"gethostent(?:_r)?",
    r"get(?:pw(?:nam|uid|ent)|gr(?:nam|gid|ent)|sp(?:nam|ent)|sg(?:nam|ent))(?:_r)?", r"getgrouplist", r"initgroups",
    r"get(?:serv|proto|net|rpc)(?:by(?:name|port|number|addr)|ent)(?:_r)?", r"getnetgrent(?:_r)?", r"innetgr",
    r"ether_(?:ntohost|hostton)", r"getlogin(?:_r)?", r"cuserid", r"getpw",
    r"rcmd(?:_af)?", r"ruserok(?:_af)?", r"GLOB_TILDE\w*", r"wordexp",
    # Names in other alphabets, character sets, stack traces: libidn2, gconv modules, libgcc_s.
    r"AI_(?:CANON)?IDN", r"NI_IDN", r"iconv(?:_open)?", r"backtrace",
    r"dlm?open",
    # Functions of libuv and OpenSSL that call one of the above.
    r"uv_(?:getaddrinfo|getnameinfo|os_homedir|os_get_passwd2?|os_get_group|dlopen)",
    r"BIO_(?:gethostbyname|get_host_ip|get_port|get_accept_socket|lookup(?:_ex)?)",
    r"BIO_(?:new_connect|new_accept|s_connect|s_accept)",
    r"(?:OSSL_PROVIDER|DSO)_(?:try_)?load(?:_ex)?", r"ENGINE_\w+", r"OPENSSL_(?:config|load_builtin_modules)",
    r"CONF_modules_load(?:_file)?(?:_ex)?")) + r")\b")
EXCEPTION = re.compile(r"\b(?:try\s*\{|catch\s*\(|throw\b)")
# A range-for over a folder throws at an error in the middle.
FOLDER_LOOP = re.compile(r"for \([^;{]*:\s*(?:std::filesystem|fs)::(?:recursive_)?directory_iterator\(")
CODE_OF_A_VALUE = re.compile(r"(?:EXPECT|ASSERT)_EQ\((?:[^;](?!error\(\)\.error))*?\.error\(\)\.code\b")
OF_TESTS = re.compile(r"_(?:test|testing)\.(?:cc|h)$")
# Functions that look up names unless they are given this flag.
NUMERIC = {"getnameinfo": "NI_NUMERICHOST"}
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def complaints_about(path, text):
    """Yields a line for each forbidden call in the text of a file."""
    code = NOT_CODE.sub(blank, text)
    for match in FORBIDDEN.finditer(code):
        if path not in ALLOWED.get(match.group(1), ()):
            line = code.count("\n", 0, match.start()) + 1
            yield (f"{path}:{line}: {match.group(1)} could load a module of the machine's C library "
                   "(see tools/check_calls.py)")
    for match in FOLDER_LOOP.finditer("" if OF_TESTS.search(path) else code):
        line = code.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: use io::names_in(), or increment(error) (see tools/check_calls.py)"
    for match in CODE_OF_A_VALUE.finditer(code):
        line = code.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: use code_of(result) of base/error_testing.h (see tools/check_calls.py)"
    for match in EXCEPTION.finditer("" if OF_TESTS.search(path) else code):
        line = code.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: return a Result: release builds have no exceptions (see tools/check_calls.py)"
    for name, flag in NUMERIC.items():
        for match in re.finditer(rf"\b{name}\s*\(([^;]*)\)", code):
            if flag not in match.group(1):
                line = code.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: {name} without {flag} looks up names (see tools/check_calls.py)"


def sees_what_it_should():
    """Returns whether the patterns still find known bad calls and pass known good ones. A broken pattern would find
    nothing and pass every file."""
    bad = ["getpwuid(0);", "getgrnam_r (x)", "::getaddrinfo(a)", "uv_os_homedir(a, b)", "getservbyname(a, b)",
           "getnameinfo(a, b, c, d, e, f, 0);", "int f = AI_IDN;", "try {", "throw 1;",
           "EXPECT_EQ(find(a).error().code, Errc::denied);",
           "for (const auto& one : std::filesystem::directory_iterator(a, error))"]
    good = ["// getpwuid", 'log("getpwuid");', "getpid();", "getaddrinfo_text", "getnameinfo(a,\n NI_NUMERICHOST);"]
    return all(list(complaints_about("x.cc", text)) for text in bad) and \
        not any(list(complaints_about("x.cc", text)) for text in good)


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1]
    if not sees_what_it_should():
        print("calls: the check itself is broken")
        return 1
    complaints = [complaint for path in sorted((root / "src").rglob("*")) if path.suffix in (".cc", ".h", ".c")
                  for complaint in complaints_about(str(path.relative_to(root)), path.read_text())]
    for complaint in complaints:
        print(complaint)
    print(f"calls: {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
