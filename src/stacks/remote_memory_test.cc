#include "stacks/remote_memory.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <numeric>
#include <vector>

namespace lockstep::stacks {
namespace {

Address address(const void* at) {
  return reinterpret_cast<Address>(at);
}

TEST(RemoteMemory, ReadsMorePiecesThanASystemCallTakes) {
  std::vector<std::uint32_t> numbers(3000);
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::vector<std::uint32_t> copies(numbers.size());
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    pieces.push_back({address(&numbers[i]), std::as_writable_bytes(std::span(&copies[i], 1))});
  RemoteMemory memory(getpid());
  EXPECT_EQ(memory.read_pieces(pieces), pieces.size());
  EXPECT_EQ(copies, numbers);
  EXPECT_EQ(memory.last_error(), 0);
}

TEST(RemoteMemory, StopsAtTheFirstPieceThatIsNotMapped) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const two =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(two, MAP_FAILED);
  const Address end = address(two) + page;
  munmap(static_cast<char*>(two) + page, page);
  std::array<std::byte, 16> into{};
  RemoteMemory memory(getpid());
  const std::array<Piece, 3> pieces{Piece{end - 16, into}, Piece{end - 8, into},
                                    Piece{end - 32, into}};
  EXPECT_EQ(memory.read_pieces(pieces), 1U);
  EXPECT_FALSE(memory.read(end, into));
  EXPECT_EQ(memory.last_error(), EFAULT);
  EXPECT_FALSE(memory.read(0, into));
  EXPECT_FALSE(memory.read(~Address{7}, into));
  munmap(two, page);
}

TEST(RemoteMemory, AnEndedProcessHasNone) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  RemoteMemory memory(child);
  std::array<std::byte, 1> into{};
  EXPECT_FALSE(memory.read(address(&into), into));  // a zombie
  EXPECT_EQ(memory.last_error(), ESRCH);
  waitpid(child, nullptr, 0);
  memory.forget_error();
  EXPECT_FALSE(memory.read(address(&into), into));
  EXPECT_EQ(memory.last_error(), ESRCH);
}

}  // namespace
}  // namespace lockstep::stacks
