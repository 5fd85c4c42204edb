/* Running compiled kernels: what machine code sees of its warp, how a grid is launched, what is
 * left behind.  The offsets of va_warp are the contract with src/va100/jit/abi.py. */
#ifndef VA100_EXEC_H
#define VA100_EXEC_H
#include "va100/arena.h"
#ifdef __cplusplus
extern "C" {
#endif

#define VA_LANES 32

/* What an access of machine code went to last: a whole allocation, so that the next one there is
 * found legal by one comparison. (address - low) rotated right by the alignment is below `room`
 * exactly when the access may be made; a region that knows nothing has no room. */
typedef struct va_region {
  uint64_t low;
  uint64_t room;
  uint64_t misses;
  uint64_t reserved;
} va_region;

/* One warp's view of the machine; machine code reads it, the scheduler writes it. */
typedef struct va_warp {
  const uint8_t *params;      /*   0 parameter block of the launch */
  uint8_t *shared;            /*   8 this CTA's shared window; its generic address */
  uint8_t *local;             /*  16 lane l's local memory starts at local + l * local_stride */
  uint64_t *counters;         /*  24 this worker's counters of the variant */
  const uint64_t *globals;    /*  32 addresses of module-scope variables, by ordinal */
  uint32_t ctaid[3];          /*  40 */
  uint32_t warp_id;           /*  52 index in the CTA */
  uint32_t nctaid[3];         /*  56 */
  uint32_t live;              /*  68 mask of lanes that exist */
  uint32_t smid;              /*  72 */
  uint32_t shared_bytes;      /*  76 static + dynamic */
  uint32_t dynamic_bytes;     /*  80 dynamic part of shared memory */
  uint32_t local_stride;      /*  84 */
  uint64_t gridid;            /*  88 */
  uint64_t envreg12;          /*  96 cooperative-launch workspace, (envreg1 << 32) | envreg2 */
  void *scheduler;            /* 104 private */
  uint64_t more;              /* 112 CTAs that machine code goes on to by itself: VA_GOES_ON */
  uint64_t stack_limit;       /* 120 lowest stack address at which a function may begin */
  uint64_t clock;             /* 128 instructions issued so far, where a kernel looks at the time */
  va_region *regions;         /* 136 this worker's regions of the variant, by slot */
  uint64_t observed;          /* 144 non-zero: this CTA's accesses are told to va_h_observe */
} va_warp;

/* Runs `count` warps of one CTA, one after another; their views lie VA_WARP_STRIDE bytes apart.
 * A variant that goes on does the same for `more` further CTAs, each one further in x and one SM on. */
#define VA_WARP_STRIDE 256
typedef void (*va_warp_function)(va_warp *first, uint32_t count);

enum va_variant_flags {
  VA_USES_BARRIERS = 1, /* warps need stacks of their own */
  VA_ORDERED = 2,       /* result depends on the order of CTAs: one worker */
  VA_FREES = 4,         /* frees memory: no region may be remembered */
  VA_INTERPRETED = 8,   /* no machine code: the backend runs launches, to be watched */
  VA_GOES_ON = 16       /* one call may run several CTAs that are neighbours in x */
};

/* A function compiled in chunks: numbers below `block_count` are converged blocks, then come masked
 * ones, then what is done when all lanes wait.  The table has the chunk that each is part of, 0
 * while it is not compiled; facts are those of src/va100/jit/frame.py. */
typedef struct va_chunked {
  uint64_t *table;
  const uint8_t *facts;
} va_chunked;

/* Compiles the chunk of a number and enters it into the table; 0 and a reason when it cannot. */
typedef int (*va_supply)(uint32_t function, uint32_t number, char *why, size_t capacity);

/* Machine code of one kernel for one block shape. The memory behind it outlives the module. */
typedef struct va_variant {
  va_warp_function enter; /* warps from entry to exit */
  const uint64_t *globals;
  uint32_t flags;
  uint32_t static_shared_bytes;
  uint32_t local_bytes; /* a thread */
  uint32_t counter_count;
  uint32_t param_bytes;
  uint32_t check_id; /* compiled for the checker: its number there; else 0 */
  uint32_t region_count;
  uint32_t observed_at; /* the counter at which those of observed CTAs begin; 0: there are none */
  const va_chunked *chunked; /* by number of the function */
  va_supply supply;
} va_variant;

enum va_fault_kind {
  VA_FAULT_NONE = 0,
  VA_FAULT_ILLEGAL_ADDRESS = 1,
  VA_FAULT_MISALIGNED = 2,
  VA_FAULT_TRAP = 3,
  VA_FAULT_ASSERT = 4,
  VA_FAULT_ILLEGAL_INSTRUCTION = 5, /* text says which rule was broken */
  VA_FAULT_DEADLOCK = 6,
  VA_FAULT_STACK = 7,
  VA_FAULT_TIMEOUT = 8,
  VA_FAULT_RESOURCES = 9 /* no memory to run it in */
};

typedef struct va_fault {
  uint32_t kind;
  uint32_t site; /* index of the instruction in the variant, flattened with called functions */
  uint32_t ctaid[3];
  uint32_t tid[3];
  uint64_t address;
  uint32_t size;
  uint32_t space; /* 0 generic 1 global 2 shared 3 local 4 const 5 param */
  uint32_t write; /* 1 for stores and atomics */
  uint32_t reserved;
  char text[512];
} va_fault;

enum {
  VA_OBSERVE_AMONG = 0, /* observed CTAs lie all over the grid, and all others run as well */
  VA_OBSERVE_ONLY = 1,  /* no others run */
  VA_OBSERVE_ROW = 2    /* nothing but observe_ctas neighbours from observe_first on runs */
};

typedef struct va_launch {
  const va_variant *variant;
  const void *params;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared_bytes;
  uint32_t cooperative;
  uint32_t workers;       /* 0: as many as the machine has cores */
  uint32_t resident_ctas; /* CTAs the virtual chip holds at once; 0: no limit known */
  uint32_t sm_count;
  uint32_t observe_ctas; /* CTAs whose accesses are looked at, where the variant tells of them */
  uint32_t shuffle;      /* another order of CTAs and warps for each number; 0: as they are numbered */
  uint32_t l1_cta_bytes; /* L1 that a resident CTA has for itself */
  uint64_t l2_bytes;
  uint32_t observed_only; /* VA_OBSERVE_* */
  uint32_t observe_first; /* where a row of neighbours begins */
  uint64_t *counters;    /* out: counter_count sums */
  va_fault fault;        /* out */
} va_launch;

/* Run a grid to its end on the worker pool. Returns fault.kind. */
VA_EXPORT int va_exec_launch(va_launch *launch);

/* Text that device-side printf has written since the last call, in CTA, warp, lane order of each
 * launch.  Returns bytes copied; call until 0. */
VA_EXPORT size_t va_exec_take_output(char *buffer, size_t capacity);

/* Address of a function that machine code may call, by name; 0 when there is none. */
VA_EXPORT uint64_t va_exec_helper(const char *name);

#ifdef __cplusplus
}
#endif
#endif
