/* check.c BUNDLE/FILE ANSWERS/FILE: does each element of each result lie within its bound of what is expected? Exit
   code 0: yes, 1: no, 2: not readable. For little-endian machines; needs C's own library alone. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { char *header, type[8]; unsigned char* data; uint64_t bytes; } Part; /* a file, or a tensor of one */
static void stop(const char* what, const char* name) { fprintf(stderr, "check: %s: %s\n", name, what); exit(2); }

static Part read_file(const char* name) {
  Part f = {0}; FILE* from = fopen(name, "rb"); uint64_t n = 0;
  if (!from || fread(&n, 8, 1, from) != 1 || n > 100000000 || !(f.header = calloc(n + 1, 1))) stop("no tensors", name);
  if (fread(f.header, 1, n, from) != n || fseek(from, 0, SEEK_END)) stop("cut off", name);
  f.bytes = (uint64_t)ftell(from) - 8 - n;
  if (!(f.data = malloc(f.bytes + 1)) || fseek(from, (long)(8 + n), SEEK_SET)) stop("too large", name);
  if (fread(f.data, 1, f.bytes, from) != f.bytes || fclose(from)) stop("cut off", name);
  return f;
}

static Part find(Part f, const char* kind, const char* name) {
  Part t = f;
  unsigned long long first = 0, end = 0; char key[80];
  snprintf(key, sizeof key, "\"%s%.*s\"", kind, (int)strcspn(name, "\""), name);
  const char* at = strstr(f.header, key);
  const char *type = at ? strstr(at, "\"dtype\"") : 0, *place = at ? strstr(at, "\"data_offsets\"") : 0;
  if (!type || !place || sscanf(type + 7, " : \"%7[A-Z0-9_]", t.type) != 1 ||
      sscanf(place + 14, " : [ %llu , %llu", &first, &end) != 2 || first > end || end > f.bytes) stop("no tensor", key);
  return t.data += first, t.bytes = end - first, t;
}

static double number(Part t, uint64_t n, int width) { /* element n of F64, F32, BF16 or F16 */
  double d; float f; uint32_t w = 0;
  if (width == 8) return memcpy(&d, t.data + 8 * n, 8), d;
  memcpy(&w, t.data + (uint64_t)width * n, (size_t)width);
  const int e = w >> 10 & 31, m = w & 1023;
  if (!strcmp(t.type, "F16"))
    return (w >> 15 ? -1 : 1) * (e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24));
  if (width == 2) w <<= 16; /* BF16 is the upper half of F32 */
  return memcpy(&f, &w, 4), (double)f;
}

int main(int argc, char** argv) {
  if (argc != 3) stop("a file of the bundle and one of answers are wanted", "usage");
  const Part truth = read_file(argv[1]), given = read_file(argv[2]);
  unsigned long long wrong = 0, compared = 0;
  if (!strstr(truth.header, "\"expected.")) stop("nothing is expected", argv[1]);
  for (const char* at = truth.header; (at = strstr(at, "\"expected.")); at += 10) {
    const Part e = find(truth, "expected.", at + 10), b = find(truth, "bound.", at + 10), g = find(given, "", at + 10);
    const int width = strstr("BF16", g.type) ? 2 : strcmp(g.type, "F32") ? 8 : 4;
    if (g.bytes != e.bytes / 8 * (uint64_t)width || b.bytes != e.bytes) stop("another number of elements", argv[2]);
    for (uint64_t n = 0; n < e.bytes / 8; ++n) {
      const double x = number(e, n, 8), limit = number(b, n, 8), y = number(g, n, width);
      if (limit == INFINITY) continue; /* nothing can be said of this element */
      ++compared, wrong += isnan(x) ? isfinite(y) : isinf(x) ? y != x : !(fabs(y - x) <= limit);
    }
  }
  printf("%s: %llu of %llu elements are wrong\n", argv[2], wrong, compared);
  return wrong > 0;
}
