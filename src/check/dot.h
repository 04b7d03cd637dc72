/* An execution as a graph, in the language of Graphviz (dot). */
#ifndef BIDE_CHECK_DOT_H
#define BIDE_CHECK_DOT_H

/* Returns the graph of the running execution, whose steps have numbers (trace.h). The caller frees it. */
char *dot_execution(void);

#endif
