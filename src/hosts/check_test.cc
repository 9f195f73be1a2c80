#include "host/facts_json.h"
#include "hosts/check_findings.h"
#include "hosts/check_report.h"
#include "hosts/words.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>

namespace lockstep::hosts {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// A host without findings.
HostCheck good(int number) {
  HostCheck check{.name = fmt::format("gpus-{}", number), .where = "me@h"};
  check.latency_ms = 0.25;
  check.clock_error_ms = 0.1;
  host::Facts& facts = check.facts;
  facts.user = "me";
  facts.uid = 2001;
  facts.host = "h";
  facts.machine = std::to_string(number);
  facts.os = "Debian";
  facts.kernel = "6.1";
  facts.arch = "x86_64";
  facts.cpus = 8;
  facts.memory = facts.memory_available = 24 * kGiB;
  const auto space = [](const char* path) {
    return host::Space{path, true, 100 * kGiB, 50 * kGiB, 1'000'000, true, false};
  };
  facts.home = space("/home/me");
  facts.tmp = space("/tmp");
  facts.shm = space("/dev/shm");
  facts.gpus = {{"nvidia", "H100", "GPU-1", 80 * kGiB}, {"nvidia", "H100", "GPU-2", 80 * kGiB}};
  facts.driver = "535.1";
  facts.python = {"/usr/bin/python3", "3.11.2"};
  facts.open_files = 1024;
  facts.open_files_hard = 4096;
  return check;
}

// Returns "WEIGHT what" of each finding of a good host that `spoil` has changed. WEIGHT: T for
// trouble, w for a warning.
std::vector<std::string> found(const std::function<void(HostCheck&)>& spoil) {
  HostCheck check = good(0);
  spoil(check);
  std::vector<std::string> words;
  for (const Finding& finding : findings_of({check}))
    words.push_back(std::string(finding.weight == Finding::Weight::trouble ? "T " : "w ") +
                    std::string(finding.what));
  return words;
}
using Words = std::vector<std::string>;

TEST(CheckFindings, NothingIsSaidOfAGoodHost) {
  EXPECT_EQ(found([](HostCheck&) {}), Words{});
  EXPECT_EQ(findings_of({good(0), good(1)}).size(), 0U);
}

TEST(CheckFindings, FoldersThatStopAJob) {
  EXPECT_EQ(found([](HostCheck& c) { c.facts.home.writable = false; }),
            Words{"T home-not-writable"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.home.no_exec = true; }), Words{"T home-noexec"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.home.free = kGiB / 8; }), Words{"T home-full"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.home.free = kGiB; }), Words{"w home-nearly-full"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.home.files_free = 0; }), Words{"T home-full"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.tmp.no_exec = true; }), Words{"T tmp-noexec"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.tmp.writable = false; }), Words{"T tmp-not-writable"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.tmp.free = 1000; }), Words{"T tmp-full"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.shm.there = false; }), Words{"T shm-missing"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.shm.total = c.facts.shm.free = 64 << 20; }),
            Words{"T shm-small"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.shm.free = 0; }), Words{"T shm-small"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.shm.total = c.facts.shm.free = 300 << 20; }),
            Words{"w shm-modest"});
}

TEST(CheckFindings, LimitsPythonAndClock) {
  EXPECT_EQ(found([](HostCheck& c) { c.facts.open_files = 256; }), Words{"T few-open-files"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.logout_kills = true; }), Words{"T logout-kills"});
  EXPECT_EQ(found([](HostCheck& c) { c.facts.python = {}; }), Words{"w no-python"});
  EXPECT_EQ(found([](HostCheck& c) { c.clock_ahead_ms = -7000; }), Words{"w clock-off"});
  EXPECT_EQ(found([](HostCheck& c) {
              c.clock_ahead_ms = 7000;
              c.clock_error_ms = 3000;
            }),
            Words{});
  HostCheck late = good(0);
  late.clock_ahead_ms = -2 * 3'600'000.0;
  const auto findings = findings_of({late});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].weight, Finding::Weight::trouble);
  EXPECT_NE(findings[0].text.find("2.0 hours behind ours"), std::string::npos) << findings[0].text;
}

TEST(CheckFindings, HostsThatDifferAreToldApart) {
  std::vector<HostCheck> checks = {good(0), good(1), good(2)};
  checks[2].facts.arch = "aarch64";
  auto findings = findings_of(checks);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].what, "arch-differs");
  EXPECT_EQ(findings[0].text, "processors differ: x86_64 (gpus-0, gpus-1), aarch64 (gpus-2)");
  EXPECT_EQ(findings[0].nodes.size(), 3U);

  const auto what = [](const std::function<void(HostCheck&)>& spoil) {
    std::vector<HostCheck> two = {good(0), good(1)};
    spoil(two[1]);
    const auto told = findings_of(two);
    return told.size() == 1 ? std::string(told[0].what) : fmt::format("{} findings", told.size());
  };
  EXPECT_EQ(what([](HostCheck& c) { c.facts.gpus.pop_back(); }), "gpus-differ");
  EXPECT_EQ(what([](HostCheck& c) { c.facts.python.version = "3.12.0"; }), "python-differs");
  EXPECT_EQ(what([](HostCheck& c) { c.facts.python.version = "3.11.9"; }), "0 findings");
  EXPECT_EQ(what([](HostCheck& c) { c.facts.driver = "550.1"; }), "driver-differs");
  EXPECT_EQ(what([](HostCheck& c) { c.facts.machine = "0"; }), "same-machine");
}

TEST(CheckFindings, TheSameOfManyIsOneLineAndTheUnreachedAreLeftOut) {
  std::vector<HostCheck> checks;
  for (int i = 0; i < 32; ++i) {
    checks.push_back(good(i));
    checks.back().facts.tmp.no_exec = i != 5;
  }
  checks[7] = {.name = "gpus-7", .where = "me@h", .error = "gpus-7: connection refused"};
  CheckReport report{.hosts = checks, .findings = findings_of(checks)};
  ASSERT_EQ(report.findings.size(), 1U);
  const std::string text = report_text(report);
  EXPECT_NE(text.find("trouble: gpus-0 to gpus-4, gpus-6, gpus-8 to gpus-31: /tmp is"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("not reached: gpus-7: connection refused\n"), std::string::npos) << text;
  EXPECT_EQ(report_code(report), 255);
  report.hosts[7] = good(7);
  EXPECT_EQ(report_code(report), 1);
  report.findings[0].weight = Finding::Weight::warning;
  EXPECT_EQ(report_code(report), 0);
}

TEST(CheckReport, OneHostIsACardAndSeveralAreATable) {
  CheckReport report{.hosts = {good(0)}};
  std::string text = report_text(report);
  EXPECT_NE(text.find("gpus-0: reached in 0.2 ms\n"), std::string::npos) << text;
  EXPECT_NE(text.find("2 x H100 (80 GiB), driver 535.1"), std::string::npos) << text;
  EXPECT_NE(text.find("nothing stands in the way"), std::string::npos) << text;
  report.hosts.push_back(good(1));
  report.hosts[1].facts.cpu_quota = 2.5;
  report.hosts[1].facts.memory_limit = 4 * kGiB;
  report.hosts[1].clock_ahead_ms = -12'345;
  text = report_text(report);
  EXPECT_NE(text.find("gpus-1  0.2 ms   me    h     x86_64  2.5 of 8  4.0 GiB  50 GiB  3.11.2  "
                      "-12 s    2 x H100\n"),
            std::string::npos)
      << text;
}

TEST(CheckReport, NothingFromAHostReachesTheTerminalAsItIs) {
  CheckReport report{.hosts = {good(0)}, .repairs = true};
  host::Facts& facts = report.hosts[0].facts;
  for (std::string* text : {&facts.user, &facts.host, &facts.os, &facts.kernel, &facts.arch,
                            &facts.driver, &facts.home.path, &facts.python.path,
                            &facts.python.version, &facts.git.path, &facts.git.version})
    *text = "\x1b[2J";
  facts.gpus[0].name = "\x1b[2J";
  report.hosts[0].repaired = {"\x1b[2J"};
  report.hosts.push_back(report.hosts[0]);
  report.hosts[1].facts.home.writable = false;
  report.findings = findings_of(report.hosts);
  EXPECT_EQ(report_text(report).find('\x1b'), std::string::npos);
  report.hosts.pop_back();
  EXPECT_EQ(report_text(report).find('\x1b'), std::string::npos);
}

TEST(CheckReport, JsonHoldsAllOfIt) {
  CheckReport report{.hosts = {good(0), {.name = "gpus-1", .where = "h", .error = "gpus-1: no"}},
                     .repairs = true};
  report.hosts[0].facts.tmp.no_exec = true;
  report.findings = findings_of(report.hosts);
  report.repaired_here = {"a socket"};
  const auto json = report_json(report);
  EXPECT_EQ(json["nodes"][0]["facts"]["gpus"].size(), 2U);
  EXPECT_EQ(json["nodes"][0]["reached"], true);
  EXPECT_EQ(json["nodes"][1]["error"], "gpus-1: no");
  EXPECT_EQ(json["findings"][0]["what"], "tmp-noexec");
  EXPECT_EQ(json["repaired_here"][0], "a socket");
}

TEST(HostAnswer, IsTakenOnlyAsAWhole) {
  HostCheck check;
  const std::string facts = codec::print_json(host::facts_json(good(0).facts));
  EXPECT_TRUE(take_answer(R"({"facts":)" + facts + R"(,"repaired":["x"]})", check));
  EXPECT_EQ(check.facts.user, "me");
  EXPECT_EQ(check.repaired.size(), 1U);
  for (const std::string& text : {std::string(), std::string("[]"), R"({"facts":)" + facts + "}",
                                  R"({"facts":)" + facts + R"(,"repaired":[7]})",
                                  std::string(R"({"facts":{},"repaired":[]})")})
    EXPECT_FALSE(take_answer(text, check)) << text;
}

TEST(HostClock, IsComparedWithTheMiddleOfTheQuestion) {
  // Asked at 1 s and answered after 40 ms: the host said 3.000 s at 1.020 s of our clock.
  EXPECT_DOUBLE_EQ(clock_ahead_ms(3'000'000'000, 1000, 40), 1980);
  EXPECT_DOUBLE_EQ(clock_ahead_ms(500'000'000, 1000, 0), -500);
}

TEST(HostWords, Sizes) {
  EXPECT_EQ(memory_text(0), "0.0 KiB");
  EXPECT_EQ(memory_text(64 << 20), "64 MiB");
  EXPECT_EQ(memory_text(kGiB * 3 / 2), "1.5 GiB");
}

}  // namespace
}  // namespace lockstep::hosts
