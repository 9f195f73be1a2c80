#include "stacks/native_point.h"

#include "stacks/call_names.h"
#include "stacks/native_symbols.h"

#include <gtest/gtest.h>

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

namespace lockstep::stacks {
namespace {

TEST(ThreadPoint, IsReadFromTheKernelsLine) {
  EXPECT_EQ(parse_point("running\n"), (ThreadPoint{.runs = true}));
  EXPECT_EQ(
      parse_point("7 0x7ffd1 0x1 0xffffffffffffffff 0x0 0x0 0x7f9c 0x7ffdc8a0 0x7f90e45b82ad\n"),
      (ThreadPoint{.call = 7, .stack = 0x7ffdc8a0, .at = 0x7f90e45b82ad}));
  EXPECT_EQ(parse_point("-1 0x7ffdc8a0 0x401000\n"),
            (ThreadPoint{.call = -1, .stack = 0x7ffdc8a0, .at = 0x401000}));
}

TEST(ThreadPoint, IsNotReadFromAnythingElse) {
  for (const char* text :
       {"", "\n", "run", "7", "7 0x1 0x2", "-1 0x1", "-1 1 2", "-2 0x1 0x2", "-1 0x1 0xg",
        "7 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x", "7 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x11111111111111111",
        "99999999 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x2"})
    EXPECT_EQ(parse_point(text), std::nullopt) << text;
}

TEST(ThreadState, IsReadBehindTheLastParenthesis) {
  const auto state = parse_thread_state("8124 (a) b\x1b) D 1 2 3");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->name, "a) b\\x1b");
  EXPECT_EQ(state->state, 'D');
  for (const char* text : {"", "(", ")", ")(", "1 (a)", "1 (a) ", "1 (a)S"})
    EXPECT_FALSE(parse_thread_state(text)) << text;
}

bool is_call(std::initializer_list<unsigned> end) {
  std::array<std::byte, kCallBytes> code{};
  code.fill(std::byte{0x90});
  std::size_t at = kCallBytes - end.size();
  for (const unsigned each : end)
    code[at++] = std::byte(each);
  return ends_with_call(code);
}

TEST(CallWords, TellPageFaultsFromOtherWaits) {
  EXPECT_EQ(call_words({.call = SYS_poll}, 'S'), "poll");
  EXPECT_EQ(call_words({}, 'D'), "page fault");
  EXPECT_EQ(call_words({}, 'T'), "stopped by a signal");
  EXPECT_EQ(call_words({}, 't'), "held by a debugger");
  EXPECT_EQ(call_words({}, 'S'), "");
}

TEST(MemoryMap, MayBeHeldByThreadsThatChangeIt) {
  EXPECT_TRUE(may_hold_map('D', ThreadPoint{.call = SYS_munmap}));
  EXPECT_TRUE(may_hold_map('D', ThreadPoint{}));  // a page fault
  EXPECT_TRUE(may_hold_map('D', {}));
  EXPECT_FALSE(may_hold_map('D', ThreadPoint{.call = SYS_read}));
  EXPECT_FALSE(may_hold_map('S', ThreadPoint{.call = SYS_munmap}));
  EXPECT_FALSE(may_hold_map('S', {}));
}

TEST(CallInstruction, IsFoundInAllItsForms) {
  EXPECT_TRUE(is_call({0xe8, 1, 2, 3, 4}));              // call f
  EXPECT_TRUE(is_call({0xff, 0xd0}));                    // call *%rax
  EXPECT_TRUE(is_call({0x41, 0xff, 0xd3}));              // call *%r11
  EXPECT_TRUE(is_call({0xff, 0x10}));                    // call *(%rax)
  EXPECT_TRUE(is_call({0xff, 0x50, 0x18}));              // call *0x18(%rax)
  EXPECT_TRUE(is_call({0xff, 0x14, 0xd8}));              // call *(%rax,%rbx,8)
  EXPECT_TRUE(is_call({0xff, 0x54, 0x24, 0x08}));        // call *8(%rsp)
  EXPECT_TRUE(is_call({0xff, 0x15, 1, 2, 3, 4}));        // call *f@GOTPCREL(%rip)
  EXPECT_TRUE(is_call({0xff, 0x90, 1, 2, 3, 4}));        // call *0x4030201(%rax)
  EXPECT_TRUE(is_call({0xff, 0x94, 0xc8, 1, 2, 3, 4}));  // call *d(%rax,%rcx,8)
  EXPECT_TRUE(is_call({0xff, 0x14, 0x25, 1, 2, 3, 4}));  // call *0x4030201
}

TEST(CallInstruction, IsNotFoundInOtherCode) {
  EXPECT_FALSE(is_call({}));
  EXPECT_FALSE(is_call({0xff, 0xe0}));              // jmp *%rax
  EXPECT_FALSE(is_call({0xff, 0x25, 1, 2, 3, 4}));  // jmp *f(%rip)
  EXPECT_FALSE(is_call({0xff, 0x30}));              // push (%rax)
  EXPECT_FALSE(is_call({0xe9, 1, 2, 3, 4}));        // jmp f
  EXPECT_FALSE(is_call({0xe8, 1, 2, 3}));
  EXPECT_FALSE(is_call({0x0f, 0x05}));  // syscall
}

TEST(CallName, IsThatOfTheSystemCall) {
  EXPECT_EQ(call_name(SYS_futex), "futex");
  EXPECT_EQ(call_name(SYS_ppoll), "ppoll");
  EXPECT_EQ(call_name(99'999), "system call 99999");
}

TEST(ShortName, IsWithoutArguments) {
  const std::pair<const char*, const char*> kNames[] = {
      {"poll", "poll"},
      {"ncclGroupEnd", "ncclGroupEnd"},
      {"_Z3foov", "foo"},
      {"_ZL3fooi", "foo"},
      {"_ZN4c10d16ProcessGroupNCCL8watchdogEv", "c10d::ProcessGroupNCCL::watchdog"},
      {"_ZNK4gloo9transport3tcp4Pair4waitEv", "gloo::transport::tcp::Pair::wait"},
      {"_ZN4gloo6BufferC2Ei", "gloo::Buffer::Buffer"},
      {"_ZN4gloo6BufferD1Ev", "gloo::Buffer::~Buffer"},
      {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<>::push_back"},
      {"_ZSt4swapIiEvRT_S1_", "std::swap"},
      {"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
       "std::condition_variable::wait"},
      {"_ZN12_GLOBAL__N_14waitEv", "{anonymous}::wait"},
      {"_ZZN1a1bEvENKUlvE_clEv", "a::b::{local}"},
      {"_ZNKSt8functionIFvvEEclEv", "std::function<>::operator"},
      {"_ZN1a3runIJiNS_1bILb1ELi64EEEEE4stepEv", "a::run<>::step"},
      {"_ZN1aB5cxx111bEv", "a::b"}};
  for (const auto& [symbol, name] : kNames)
    EXPECT_EQ(short_name(symbol), name) << symbol;
}

TEST(ShortName, OfAnythingElseIsTheSymbol) {
  for (const char* symbol : {"", "_Z", "_ZN", "_ZN4c10d", "_ZTV3foo", "_ZN99foo3barEv", "_ZN3fooI",
                             "_ZN0E", "_ZNS_3fooE", "_Z99999999999999999999999foo"})
    EXPECT_EQ(short_name(symbol), symbol) << symbol;
  EXPECT_EQ(short_name("a\x1b[2J"), "a\\x1b[2J");
  EXPECT_LE(short_name("_ZN1a" + std::string(10'000, 'C')).size(), 1'000U);
  std::string constructors = "_ZN100" + std::string(100, 'a');
  for (int i = 0; i < 1'000; ++i)
    constructors += "C1";
  EXPECT_LE(short_name(constructors).size(), 1'000U);
}

}  // namespace
}  // namespace lockstep::stacks
