// A write to a protected page raises a signal; its handler waits and lets the write try again.
#include "held_writes.h"

#include <atomic>
#include <csignal>
#include <ctime>
#include <sys/mman.h>

namespace va {
namespace {

// The pages held, or those held last: a signal may arrive when all is over.
std::atomic<uint64_t> g_first{0}, g_last{0};
std::atomic<bool> g_held{false};
struct sigaction g_before;

bool is_held(const siginfo_t *info) {
  const uint64_t address = reinterpret_cast<uint64_t>(info->si_addr);
  return address >= g_first.load() && address < g_last.load();
}

void pass_on(int number, siginfo_t *info, void *context) {
  if (g_before.sa_flags & SA_SIGINFO)
    g_before.sa_sigaction(number, info, context);
  else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN)
    g_before.sa_handler(number);
  else
    signal(number, SIG_DFL); // and the instruction faults anew
}

void on_fault(int number, siginfo_t *info, void *context) {
  if (!is_held(info))
    return pass_on(number, info, context);
  while (g_held.load()) {
    const timespec moment{0, 100'000};
    nanosleep(&moment, nullptr);
  }
}

// Again each time, as the client may have put a handler of its own in place.
void install() {
  struct sigaction now;
  sigaction(SIGSEGV, nullptr, &now);
  if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)
    return;
  g_before = now;
  struct sigaction ours = {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &ours, nullptr);
}

} // namespace

HeldWrites::HeldWrites(uint64_t first, uint64_t last) : first_(first), last_(last) {
  install();
  g_first = first;
  g_last = last;
  g_held = true;
  mprotect(reinterpret_cast<void *>(first_), last_ - first_, PROT_READ);
}

HeldWrites::~HeldWrites() {
  mprotect(reinterpret_cast<void *>(first_), last_ - first_, PROT_READ | PROT_WRITE);
  g_held = false;
}

} // namespace va
