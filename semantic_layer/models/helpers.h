/* Threads that help one caller at a time. Who calls meanwhile works alone. */
#ifndef HELPERS_H
#define HELPERS_H

typedef struct Crew Crew;
typedef void (*Task)(const void *job, long number);

/* Call the helpers; NULL when they are busy for another, or there are none. */
Crew *gather(void);

/* Let them sleep. */
void dismiss(Crew *crew);

/* Do tasks 0..count-1 of a job, with what help there is; all are done on return. */
void share(Crew *crew, Task task, const void *job, long count);

#endif
