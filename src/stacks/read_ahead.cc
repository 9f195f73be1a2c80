// Keeps the last two pages.
#include "stacks/read_ahead.h"

#include <span>

namespace lockstep::stacks {

bool ReadAhead::load(ObjectCopy& copy, Address at, std::size_t size) {
  const Page* const page = ahead_ ? page_with(at, size) : nullptr;
  if (page == nullptr) return copy.load(memory_, at, size);
  const Piece piece = copy.piece(at, size);
  std::memcpy(piece.into.data(), page->bytes.data() + (at - page->start), size);
  return true;
}

const ReadAhead::Page* ReadAhead::page_with(Address at, std::size_t size) {
  const Address start = at / kPage * kPage;
  if (at + size > start + kPage) return nullptr;  // an object on two pages
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    if (!pages_[i].filled || pages_[i].start != start) continue;
    last_ = i;
    return &pages_[i];
  }
  last_ = 1 - last_;
  Page& page = pages_[last_];
  page.start = start;
  page.filled = memory_.read(start, std::span(page.bytes));
  return page.filled ? &page : nullptr;
}

}  // namespace lockstep::stacks
